import socket
from pathlib import Path

import pytest
import trustme
from certificate_files import write_certificate

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.flags.serving_checks import check_certificate_directory, check_serving
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.serving.tls.tls_names import CURVES, INSECURE_SUITES, SUITES

GONE = "/nonexistent"
NO_FILE = f"open {GONE}: no such file or directory"


def problem(*flags: str, starts: bool = False) -> str:
    """What is wrong with *flags*; empty if nothing is."""
    try:
        parsed = parse_flags(flags)
        check_certificate_directory(parsed)
        check_serving(parsed, starts=starts)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--tls-cert-file=/x"], "missing filename for serving cert"),
        ([f"--tls-cert-file={GONE}", "--tls-private-key-file=/y"], NO_FILE),
        (["--tls-cipher-suites=TLS_AES_128_GCM_SHA256,foo"], "Cipher suite foo not supported or doesn't exist"),
        (["--tls-curve-preferences=0"], "curve preference 0 is out of range (must be 1-65535)"),
        (["--tls-curve-preferences=65536"], "curve preference 65536 is out of range (must be 1-65535)"),
        (["--tls-curve-preferences=23,23"], "duplicate curve preference 23"),
        (["--tls-curve-preferences=7"], "curve preference 7 is not supported by the current Go version"),
        (["--tls-min-version=foo"], 'unknown tls version "foo"'),
        ([f"--tls-sni-cert-key={GONE},/y"], f"failed to load SNI cert and key: {NO_FILE}"),
        (["--tls-sni-cert-key=,"], "failed to load SNI cert and key: missing filename for serving cert"),
        ([f"--client-ca-file={GONE}"], f"unable to load client CA provider: {NO_FILE}"),
        (
            [f"--requestheader-client-ca-file={GONE}"],
            f"unable to create request header authentication config: {NO_FILE}",
        ),
        (
            [f"--authentication-kubeconfig={GONE}"],
            f"{'failed to get delegated authentication kubeconfig: ' * 2}stat {GONE}: no such file or directory",
        ),
        (
            [f"--authorization-kubeconfig={GONE}"],
            f"failed to get delegated authorization kubeconfig: stat {GONE}: no such file or directory",
        ),
        (["--authorization-always-allow-paths=/a*b"], 'only trailing * allowed in "a*b"'),
        (["--authorization-always-allow-paths=/,/a*,b,"], ""),
        (["--tls-curve-preferences=" + ",".join(map(str, CURVES))], ""),
        (["--tls-cipher-suites=" + ",".join((*SUITES, *INSECURE_SUITES))], ""),
    ],
)
def test_what_keeps_https_from_being_served_is_told_before_the_start(flags: list[str], text: str) -> None:
    assert problem(*flags) == text
    assert problem(*flags, "--secure-port=0") == ""


def test_the_first_in_kube_schedulers_order_is_told() -> None:
    wrong = ["--authorization-always-allow-paths=a*b", f"--client-ca-file={GONE}", "--tls-min-version=foo"]
    assert problem(*wrong) == 'unknown tls version "foo"'
    assert problem(*wrong[:2]) == f"unable to load client CA provider: {NO_FILE}"


def test_certificates_must_have_content_that_fits_their_key(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, key = write_certificate(authority, "a.test", tmp_path)
    assert problem(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}") == ""
    (tmp_path / "other").mkdir()
    _, other = write_certificate(authority, "b.test", tmp_path / "other")
    mismatch = "tls: private key does not match public key"
    assert problem(f"--tls-cert-file={certificate}", f"--tls-private-key-file={other}") == mismatch
    assert problem(f"--tls-sni-cert-key={certificate},{other}") == f"failed to load SNI cert and key: {mismatch}"
    (tmp_path / "empty").write_text("")
    flags = [f"--tls-cert-file={tmp_path / 'empty'}", f"--tls-private-key-file={key}"]
    assert problem(*flags) == f'missing content for serving cert "serving-cert::{tmp_path / "empty"}::{key}"'


def test_a_directory_has_a_certificate_with_its_key_or_neither(tmp_path: Path) -> None:
    assert problem(f"--cert-dir={tmp_path}") == ""
    authority = trustme.CA()
    certificate, key = write_certificate(authority, "a.test", tmp_path)
    pair = certificate.rename(tmp_path / "kube-scheduler.crt"), tmp_path / "kube-scheduler.key"
    text = f"error reading {pair[1]}, certificate and key must be supplied as a pair"
    assert problem(f"--cert-dir={tmp_path}") == f"error creating self-signed certificates: {text}"
    assert problem(f"--cert-dir={tmp_path}", "--secure-port=0") == ""
    key.rename(pair[1])
    assert problem(f"--cert-dir={tmp_path}") == ""
    pair[1].write_text("nothing")
    assert problem(f"--cert-dir={tmp_path}/") == "tls: failed to find any PEM data in key input"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", 'missing content for CA bundle "client-ca-bundle::{}"'),
        (
            "no certificate",
            'error loading CA bundle for "client-ca-bundle::{}": data does not contain any valid RSA or ECDSA '
            "certificates",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            'error loading CA bundle for "client-ca-bundle::{}": x509: malformed certificate',
        ),
    ],
)
def test_an_authority_without_certificates_is_refused(content: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text(content)
    assert problem(f"--client-ca-file={path}") == f"unable to load client CA provider: {text.format(path)}"
    path.write_bytes(trustme.CA().cert_pem.bytes())
    assert problem(f"--client-ca-file={path}") == ""


def test_a_port_that_is_taken_is_told_only_if_it_will_be_opened() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flags = ["--bind-address=127.0.0.1", f"--secure-port={port}"]
        assert problem(*flags) == ""
        address = f"127.0.0.1:{port}"
        listening = f"listen tcp {address}: bind: address already in use"
        expected = f"failed to create listener: failed to listen on {address}: {listening}"
        assert problem(*flags, "--tls-min-version=foo", starts=True) == expected
    assert problem(*flags, starts=True) == ""


def test_an_address_of_another_host_cannot_be_listened_on() -> None:
    found = problem("--bind-address=192.0.2.1", starts=True)
    assert found.endswith("listen tcp 192.0.2.1:10259: bind: cannot assign requested address")
