"""What the flags about serving become."""

import logging
from pathlib import Path

import pytest
from kubeconfig_text import kubeconfig

from trio_sched.cli.flags.flags import flag_values, parse_flags
from trio_sched.cli.flags.serving_checks import check_serving
from trio_sched.cli.flags.serving_options import serving_settings
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.serving_settings import ServingSettings

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def settings(*flags: str, environ: dict[str, str] | None = None, account: Path = Path("/nowhere")) -> ServingSettings:
    return serving_settings(parse_flags(flags), environ=environ or {}, service_account=account)


def test_the_defaults_serve_everybody_nothing_but_health() -> None:
    made = settings()
    assert (made.bind_address, made.port, made.http2, made.tls.files) == ("0.0.0.0", 10259, True, None)
    assert (made.ui, settings("--ui=false").ui) == (True, False)
    assert made.authentication.connection is None
    assert made.authorization.connection is None
    assert made.authorization.always_allow_paths == ("/healthz", "/readyz", "/livez")


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--tls-cipher-suites=foo"], "Cipher suite foo not supported or doesn't exist"),
        (["--tls-curve-preferences=0"], "curve preference 0 is out of range (must be 1-65535)"),
        (["--tls-curve-preferences=23,29,23"], "duplicate curve preference 23"),
        (["--tls-curve-preferences=7"], "curve preference 7 is not supported by the current Go version"),
        (["--tls-cert-file=nope"], "missing filename for serving cert"),
        (["--tls-min-version=foo"], 'unknown tls version "foo"'),
        (["--authorization-always-allow-paths=a*b"], 'only trailing * allowed in "a*b"'),
        (["--tls-min-version=foo", "--tls-cipher-suites=bar"], "Cipher suite bar not supported or doesn't exist"),
        (["--tls-cert-file=nope", "--tls-private-key-file=nope"], "open nope: no such file or directory"),
        (["--client-ca-file=nope"], "unable to load client CA provider: open nope: no such file or directory"),
        (
            ["--authentication-kubeconfig=nope"],
            "failed to get delegated authentication kubeconfig: failed to get delegated authentication kubeconfig: "
            "stat nope: no such file or directory",
        ),
        (
            ["--authorization-kubeconfig=nope"],
            "failed to get delegated authorization kubeconfig: stat nope: no such file or directory",
        ),
        (
            ["--tls-sni-cert-key=nope,nope:x.test"],
            "failed to load SNI cert and key: open nope: no such file or directory",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_text_of_kube_scheduler(flags: list[str], error: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_serving(parse_flags(flags), starts=False)
    assert str(refused.value) == error


def test_a_file_without_authorities_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_text("junk")
    problem = "data does not contain any valid RSA or ECDSA certificates"
    for flag, prefix, bundle in (
        ("client-ca-file", "unable to load client CA provider", "client-ca-bundle"),
        ("requestheader-client-ca-file", "unable to create request header authentication config", "request-header"),
    ):
        with pytest.raises(ConfigError) as refused:
            check_serving(parse_flags([f"--{flag}={file}"]), starts=False)
        assert str(refused.value) == f'{prefix}: error loading CA bundle for "{bundle}::{file}": {problem}'


def test_a_kubeconfig_names_the_server_that_reviews(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig())
    made = settings(f"--authentication-kubeconfig={path}", f"--authorization-kubeconfig={path}")
    for connection in (made.authentication.connection, made.authorization.connection):
        assert connection is not None
        assert connection.server == "https://127.0.0.1:1"


def test_in_a_pod_its_service_account_reviews(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("ca")
    made = settings(environ=POD, account=tmp_path)
    assert made.authorization.connection is not None
    assert made.authorization.connection.server == "https://10.0.0.1:443"
    caplog.set_level(logging.WARNING)
    assert settings(environ=POD, account=tmp_path / "none").authorization.connection is None
    assert "failed to read in-cluster kubeconfig for delegated authorization" in caplog.text


@pytest.mark.parametrize(
    ("flag", "name", "shown"),
    [
        ("--requestheader-allowed-names=a,b", "requestheader-allowed-names", "[a,b]"),
        ("--tls-curve-preferences=23,29", "tls-curve-preferences", "[23,29]"),
        ("--tls-sni-cert-key=a,b:x.test,y.test", "tls-sni-cert-key", "[a,b:x.test,y.test]"),
        (
            "--feature-gates=ComponentFlagz=false,kube:AllBeta=true",
            "feature-gates",
            ":ComponentFlagz=false,kube:AllBeta=true",
        ),
        ("--vmodule=a=1,b=2", "vmodule", "a=1,b=2"),
        ("--kube-api-qps=0.5", "kube-api-qps", "0.5"),
        ("--leader-elect-lease-duration=90s", "leader-elect-lease-duration", "1m30s"),
        ("--allow-metric-labels=m,l='a,b'", "allow-metric-labels", "[\"m,l='a,b'\"]"),
        ("--bind-address=", "bind-address", "<nil>"),
        ("--profiling=false", "profiling", "false"),
        ("-v=3", "version", "false"),
    ],
)
def test_values_are_shown_as_go_prints_them(flag: str, name: str, shown: str) -> None:
    assert flag_values(parse_flags([flag]))[name] == shown
