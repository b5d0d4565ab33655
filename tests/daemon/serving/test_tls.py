"""Which certificate, which version, which suite a client gets."""

import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from client_authority import ClientAuthority, client_context
from cryptography import x509
from https_client import exchange
from serving_stage import Stage, read_to_end, serving

from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving.listener import open_listener, shown_address
from trio_sched.daemon.serving.messages import Request, Response, plain
from trio_sched.daemon.serving.tls import certificates
from trio_sched.daemon.serving.tls.certificate_text import certificate_detail
from trio_sched.daemon.serving.tls.certificates import ServingCertificates
from trio_sched.daemon.serving.tls.self_signed import self_signed
from trio_sched.daemon.serving_settings import CertificateFiles, ServingSettings, TlsServerSettings
from trio_sched.verbosity import V2

AUTHORITY = trustme.CA()


def files(folder: Path, *names: str, pattern: tuple[str, ...] = ()) -> CertificateFiles:
    folder.mkdir(exist_ok=True)
    leaf = AUTHORITY.issue_cert(*names)
    pair = CertificateFiles(certificate=str(folder / "crt"), key=str(folder / "key"), names=pattern)
    leaf.cert_chain_pems[0].write_to_path(pair.certificate)
    leaf.private_key_pem.write_to_path(pair.key)
    return pair


async def names_at(stage: Stage, server_name: str) -> list[str]:
    """The names in the certificate that a client gets who asks for *server_name*."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    context.check_hostname = False
    stream = trio.SSLStream(await stage.open(), context, server_hostname=server_name)
    await stream.do_handshake()
    subject: Any = stream.getpeercert()
    return [name for _kind, name in subject["subjectAltName"]]


async def test_a_self_signed_certificate_has_the_names_of_the_host(tmp_path: Path) -> None:
    from cryptography import x509

    chain, _key = self_signed("0.0.0.0")
    leaf, authority = x509.load_pem_x509_certificates(chain)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "localhost"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["127.0.0.1"]
    leaf.verify_directly_issued_by(authority)
    assert leaf.subject.rfc4514_string().startswith("CN=localhost@")
    assert authority.subject.rfc4514_string().startswith("CN=localhost-ca@")
    other = x509.load_pem_x509_certificate(self_signed("10.1.2.3")[0])
    names = other.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["127.0.0.1", "10.1.2.3"]


async def test_the_certificate_for_a_domain_is_the_one_that_its_client_gets(tmp_path: Path) -> None:
    tls = TlsServerSettings(
        files=files(tmp_path / "a", "default.test"),
        sni=(
            files(tmp_path / "b", "own.test"),
            files(tmp_path / "c", "star.test", pattern=("*.star.test",)),
        ),
    )
    async with serving(tls=tls) as stage:
        assert await names_at(stage, "default.test") == ["default.test"]
        assert await names_at(stage, "own.test") == ["own.test"]
        assert await names_at(stage, "x.star.test") == ["star.test"]
        assert await names_at(stage, "x.y.star.test") == ["default.test"]


async def test_files_that_change_are_read_again_and_bad_ones_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(certificates, "RELOAD_SECONDS", 0.02)
    pair = files(tmp_path, "one.test")
    async with serving(tls=TlsServerSettings(files=pair)) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(stage.server.certificates.follow_files)
        await trio.Path(pair.key).write_text("junk")
        with trio.fail_after(10):
            while "the former one stays" not in caplog.text:  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert await names_at(stage, "x.test") == ["one.test"]
        files(tmp_path, "two.test")
        with trio.fail_after(10):
            while await names_at(stage, "x.test") != ["two.test"]:  # noqa: ASYNC110
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_a_client_certificate_is_taken_whoever_has_signed_it(tmp_path: Path) -> None:
    seen: list[Request] = []

    async def record(request: Request) -> Response:
        seen.append(request)
        return plain("ok")

    async with serving(record) as stage:
        context = client_context(tmp_path, ClientAuthority("nobody").issue("ann"))
        assert (await exchange(stage.port, "GET", "/", context=context)).status == 200
    assert [one.subject.rfc4514_string() for one in seen[0].certificates] == ["CN=ann"]


@pytest.mark.parametrize(
    ("asked", "offered", "works"),
    [
        ("", ssl.TLSVersion.TLSv1_2, True),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_2, False),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_old_versions_are_refused(asked: str, offered: ssl.TLSVersion, works: bool, tmp_path: Path) -> None:
    context = client_context(tmp_path)
    context.minimum_version = context.maximum_version = offered
    async with serving(tls=TlsServerSettings(min_version=asked)) as stage:
        if works:
            assert (await exchange(stage.port, "GET", "/", context=context)).status == 200
        else:
            with pytest.raises(trio.BrokenResourceError):
                await exchange(stage.port, "GET", "/", context=context)


async def test_the_suites_that_are_asked_for_are_offered(tmp_path: Path) -> None:
    context = client_context(tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    tls = TlsServerSettings(cipher_suites=("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",), curves=(24,))
    async with serving(tls=tls) as stage:
        stream = await stage.connect(context=context)
        assert stream.cipher()[0] == "ECDHE-RSA-AES256-GCM-SHA384"


async def test_plain_http_is_told_so() -> None:
    async with serving() as stage:
        stream = await stage.open()
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await read_to_end(stream) == (
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
        )


def test_a_pair_is_kept_in_the_directory_and_found_there(tmp_path: Path) -> None:
    chosen = ServingSettings(tls=TlsServerSettings(directory=str(tmp_path / "new")))
    ServingCertificates(chosen).load()
    made = (tmp_path / "new" / "kube-scheduler.crt").read_bytes()
    assert made.count(b"BEGIN CERTIFICATE") == 2
    ServingCertificates(chosen).load()
    assert (tmp_path / "new" / "kube-scheduler.crt").read_bytes() == made
    (tmp_path / "new" / "kube-scheduler.key").unlink()
    with pytest.raises(ServingError, match="certificate and key must be supplied as a pair"):
        ServingCertificates(chosen).load()


def test_what_is_loaded_is_logged_with_what_it_contains(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V2)
    own = files(tmp_path, "own.test")
    ServingCertificates(ServingSettings(tls=TlsServerSettings(files=own, sni=(own,)))).load()
    loaded, sni = (vars(record) for record in caplog.records)
    assert (loaded["message"], loaded["levelno"]) == ("Loaded serving cert", V2)
    assert loaded["certName"] == f"serving-cert::{own.certificate}::{own.key}"
    assert "validServingFor=[own.test] issuer=" in loaded["certDetail"]
    assert (sni["message"], sni["index"]) == ("Loaded SNI cert", 0)
    assert sni["certName"] == f"sni-serving-cert::{own.certificate}::{own.key}"


def test_a_certificate_is_described_as_by_kube_scheduler() -> None:
    own, _key = ClientAuthority("people").issue("ann", ("a", "b"))
    certificate = x509.load_pem_x509_certificates(own)[0]
    now = datetime(2026, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC)
    begin, end = (
        f"{when:%Y-%m-%d %H:%M:%S} +0000 UTC"
        for when in (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    )
    assert certificate_detail(certificate, now) == (
        f'"ann" [client] groups=[a,b] issuer="people" ({begin} to {end} (now=2026-01-02 03:04:05.12 +0000 UTC))'
    )


def test_an_unspecified_address_is_both_families() -> None:
    with open_listener(ServingSettings(port=0)) as listener:
        assert shown_address(listener).startswith(("[::]:", "0.0.0.0:"))


def test_a_port_can_be_shared_on_request() -> None:
    with open_listener(ServingSettings(bind_address="127.0.0.1", port=0, share_port=True)) as first:
        port = first.getsockname()[1]
        with open_listener(ServingSettings(bind_address="127.0.0.1", port=port, share_port=True)):
            pass
        with pytest.raises(ServingError, match="address already in use"):
            open_listener(ServingSettings(bind_address="127.0.0.1", port=port))
