"""Certificates as clusters have them, and what is said about those that cannot be used; the words are Go's."""

import datetime
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from attrs import evolve
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from file_writer import Write
from trio.testing import MockClock

from trio_sched.kube_client.connection import TLS_RELOAD_SECONDS, _reload_certificates, connect
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.http import client_certificate
from trio_sched.kube_client.http.tls import TlsSource, build_context
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings


def pair(authority: trustme.CA) -> TlsSettings:
    leaf = authority.issue_cert("client")
    return TlsSettings(
        client_certificate_data=leaf.cert_chain_pems[0].bytes(), client_key_data=leaf.private_key_pem.bytes()
    )


def self_signed(
    common_name: str, names: tuple[x509.GeneralName, ...] = (), *, expired: bool = False
) -> tuple[bytes, bytes]:
    """A certificate that is its own authority, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    begin, end = (now - datetime.timedelta(days=2), now + datetime.timedelta(days=-1 if expired else 1))
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return (
        builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, *form),
    )


async def failure(nursery: trio.Nursery, write: Write, certificate: bytes, key: bytes, **tls: Any) -> str:
    """What is said of a server with *certificate*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write("server.pem", certificate + key))

    async def talk(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            await stream.receive_some()
        except trio.BrokenResourceError:
            return
        raise AssertionError("something was sent to a server that is not trusted")

    listeners: Any = await nursery.start(trio.serve_ssl_over_tcp, talk, 0, context)
    port = listeners[0].transport_listener.socket.getsockname()[1]
    settings = ConnectionSettings(server=f"https://127.0.0.1:{port}", tls=TlsSettings(ca_data=certificate, **tls))
    async with connect(settings) as client:
        with pytest.raises(ConnectionFailed) as caught:
            await client.call(b"POST", b"/x")
    assert not caught.value.may_have_reached_server
    return caught.value.problem.removeprefix("tls: failed to verify certificate: ")


# --- servers --------------------------------------------------------------------------------------------------------


async def test_a_certificate_with_only_a_common_name_is_refused_as_by_go(nursery: trio.Nursery, write: Write) -> None:
    for name in ("kubernetes.test", "127.0.0.1"):
        text = await failure(nursery, write, *self_signed(name), server_name=name)
        assert text == "x509: certificate relies on legacy Common Name field, use SANs instead"


async def test_the_names_that_a_certificate_has_are_named(nursery: trio.Nursery, write: Write) -> None:
    dns, other = x509.DNSName("a.test"), x509.DNSName("*.b.test")
    certificate = self_signed("x", (dns, other))
    text = await failure(nursery, write, *certificate, server_name="c.test")
    assert text == "x509: certificate is valid for a.test, *.b.test, not c.test"
    text = await failure(nursery, write, *certificate)
    assert text == "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
    text = await failure(nursery, write, *self_signed("x"), server_name="c.test")
    assert text == "x509: certificate is not valid for any names, but wanted to match c.test"


async def test_an_expired_certificate_is_called_that(nursery: trio.Nursery, write: Write) -> None:
    text = await failure(nursery, write, *self_signed("x", (x509.DNSName("x"),), expired=True), server_name="x")
    assert text.startswith("x509: certificate has expired or is not yet valid: current time 20")
    assert text.endswith("Z is after the certificate's notAfter")


async def test_an_intermediate_authority_can_be_the_one_that_is_trusted(nursery: trio.Nursery) -> None:
    intermediate = trustme.CA().create_child_ca()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    intermediate.issue_cert("127.0.0.1").configure_cert(context)

    async def talk(stream: trio.SSLStream[trio.SocketStream]) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    listeners: Any = await nursery.start(trio.serve_ssl_over_tcp, talk, 0, context)
    port = listeners[0].transport_listener.socket.getsockname()[1]
    tls = TlsSettings(ca_data=intermediate.cert_pem.bytes())
    async with connect(ConnectionSettings(server=f"https://127.0.0.1:{port}", tls=tls)) as client:
        assert await client.call(b"GET", b"/x") == b"{}"


def test_comments_and_unreadable_certificates_among_the_authorities_are_skipped(authority: trustme.CA) -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"
    text = "# Société Générale\n".encode() + broken + authority.cert_pem.bytes()
    assert len(build_context(TlsSettings(), (text, b"", b"")).get_ca_certs()) == 1
    with pytest.raises(KubeconfigError, match=r"^unable to load root certificates: failed to parse certificate: "):
        build_context(TlsSettings(), (broken, b"", b""))


# --- clients --------------------------------------------------------------------------------------------------------


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password(authority: trustme.CA) -> None:
    plain = pair(authority)
    key = serialization.load_pem_private_key(plain.client_key_data, None)
    for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"s3cr3t"))
        with pytest.raises(KubeconfigError) as caught:
            TlsSource(evolve(plain, client_key_data=secret)).context()
        assert str(caught.value) == ("tls: failed to parse private key: it is encrypted; use a key without a password")


def test_a_client_certificate_needs_no_temporary_directory(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    assert isinstance(TlsSource(pair(authority)).context(), ssl.SSLContext)


def test_where_there_are_no_files_in_memory_a_temporary_one_is_used_and_deleted(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    TlsSource(pair(authority)).context()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(KubeconfigError) as caught:
        TlsSource(pair(authority)).context()
    assert str(caught.value) == (
        "the client certificate cannot be loaded: there are neither files in memory (memfd_create, /proc) nor "
        "temporary files (no such file or directory); set TMPDIR to a writable directory"
    )


def test_no_descriptor_is_left_open(authority: trustme.CA) -> None:
    settings = pair(authority)
    before = len(os.listdir("/proc/self/fd"))
    TlsSource(settings).context()
    with pytest.raises(KubeconfigError):
        TlsSource(evolve(settings, client_key_data=pair(authority).client_key_data)).context()
    assert len(os.listdir("/proc/self/fd")) == before


def test_pem_blocks_are_found_between_any_text_in_linear_time() -> None:
    text = b"x\n-----BEGIN A-----\n1\n-----END A-----\ny-----BEGIN B-----\n-----BEGIN C-----\r\n2\r\n-----END C-----"
    assert [block.type for block in client_certificate.pem_blocks(text)] == ["A", "C"]
    assert client_certificate.pem_blocks(b"-----BEGIN A-----\n" * 100_000) == []


async def test_a_rotation_that_fails_keeps_the_certificates_in_use_and_logs_a_warning(
    autojump_clock: MockClock,
    nursery: trio.Nursery,
    write: Write,
    authority: trustme.CA,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def write_pair() -> tuple[str, str]:
        data = pair(authority)
        return write("cert", data.client_certificate_data), write("key", data.client_key_data)

    certificate, key = write_pair()
    source = TlsSource(TlsSettings(client_certificate_file=certificate, client_key_file=key))
    context = source.context()
    nursery.start_soon(_reload_certificates, source)
    for damage in (lambda: write("cert", "half a certif"), lambda: Path(key).unlink()):
        caplog.clear()
        damage()
        await trio.sleep(TLS_RELOAD_SECONDS + 1)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert caplog.messages[0].startswith("keeping the certificates in use: ")
        assert source.context() is context
    write_pair()
    await trio.sleep(TLS_RELOAD_SECONDS + 1)
    assert source.context() is not context
