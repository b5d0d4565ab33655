import base64
from pathlib import Path
from typing import Any

import pytest
import trustme
from file_writer import Write
from kubeconfig_text import kubeconfig

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.kubeconfig.in_cluster import in_cluster_settings
from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig

NO_CONFIGURATION = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)
NOT_A_CERTIFICATE = base64.b64encode(b"foo").decode()


@pytest.fixture
def pem(authority: trustme.CA) -> dict[str, str]:
    leaf = authority.issue_cert("client")
    texts = {
        "ca": authority.cert_pem.bytes(),
        "cert": leaf.cert_chain_pems[0].bytes(),
        "key": leaf.private_key_pem.bytes(),
    }
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}


HTTPS = {"server": "https://127.0.0.1:1"}
V1 = {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", NO_CONFIGURATION),
        (kubeconfig(**{"current-context": ""}), NO_CONFIGURATION),
        (kubeconfig(clusters=[]), NO_CONFIGURATION),
        (
            kubeconfig(**{"current-context": "x"}),
            "invalid configuration: [context was not found for specified context: x, cluster has no server defined]",
        ),
        (kubeconfig(cluster={}), 'invalid configuration: no server found for cluster "c"'),
        (kubeconfig(cluster={"server": "::bad::"}), 'parse "http://::bad::": invalid port "::bad::" after host'),
        (
            kubeconfig(cluster={**HTTPS, "certificate-authority-data": NOT_A_CERTIFICATE}),
            "unable to load root certificates: unable to parse bytes as PEM block",
        ),
        (
            kubeconfig(
                cluster={
                    **HTTPS,
                    "certificate-authority-data": NOT_A_CERTIFICATE,
                    "insecure-skip-tls-verify": True,
                }
            ),
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        (
            kubeconfig(cluster={**HTTPS, "certificate-authority": "/nope"}),
            "invalid configuration: unable to read certificate-authority /nope for c due to "
            "open /nope: no such file or directory",
        ),
        (
            kubeconfig(cluster={**HTTPS, "proxy-url": "ftp://a"}),
            """invalid configuration: invalid 'proxy-url' "ftp://a" for cluster "c": """
            'unsupported scheme "ftp", must be http, https, or socks5',
        ),
        (
            kubeconfig(user={"client-certificate-data": NOT_A_CERTIFICATE}),
            "invalid configuration: client-key-data or client-key must be specified for u "
            "to use the clientCert authentication method.",
        ),
        (
            kubeconfig(user={"exec": {"command": "foo"}}),
            "invalid configuration: [apiVersion must be specified for u to use exec authentication plugin, "
            "interactiveMode must be specified for u to use exec authentication plugin]",
        ),
        (
            kubeconfig(user={"exec": {**V1, "interactiveMode": "Foo"}}),
            'invalid configuration: invalid interactiveMode for u: "Foo"',
        ),
        (
            kubeconfig(user={"exec": {**V1, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            'exec plugin: invalid apiVersion "client.authentication.k8s.io/v1alpha1"',
        ),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), 'no Auth Provider found for name "gcp"'),
        (
            kubeconfig(user={"token": "t", "username": "me"}),
            "invalid configuration: more than one authentication method found for u; "
            "found [token basicAuth], only one is allowed",
        ),
        (
            kubeconfig(user={"as-groups": ["g"]}),
            "invalid configuration: requesting uid, groups or user-extra for u without impersonating a user",
        ),
        (kubeconfig(user={"tokenFile": "/nope"}), "open /nope: no such file or directory"),
    ],
)
def test_unusable_settings_are_refused_with_the_text_of_kube_scheduler(write: Write, text: str, error: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(write("config", text))
    assert str(caught.value) == error


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [\n", "yaml: line 1: did not find expected node content"),
        (kubeconfig(cluster={**HTTPS, "certificate-authority-data": "%%"}), "illegal base64 data at input byte 0"),
        (kubeconfig(cluster={**HTTPS, "certificate-authority-data": "ü"}), "illegal base64 data at input byte 0"),
        (kubeconfig(cluster={**HTTPS, "certificate-authority": "a\0b"}), r"open a\x00b: invalid argument"),
        (kubeconfig(user={"tokenFile": "a\0b"}), r"open a\x00b: invalid argument"),
        (kubeconfig(kind="Pod"), 'no kind "Pod" is registered for version "v1"'),
        (kubeconfig(user={"token": 5}), "expected str | null, got int - at users[0].user.token"),
        ("[]", "expected a kubeconfig, got a list"),
        (kubeconfig(users=[{"name": "u"}, {"name": "u"}]), 'users: duplicate name "u" in list'),
    ],
)
def test_an_invalid_kubeconfig_is_reported_with_its_problem(write: Write, text: str, problem: str) -> None:
    path = write("config", text)
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(path)
    assert str(caught.value).startswith(f'error loading config file "{path}": {problem}')


def test_a_token_file_that_is_none_is_named(write: Write, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(b"abc\xff")
    with pytest.raises(KubeconfigError, match=rf'^failed to read token file "{token}": it is not UTF-8 text$'):
        load_kubeconfig(write("config", kubeconfig(user={"tokenFile": str(token)})))
    with pytest.raises(KubeconfigError, match=r"open /dev/zero: not a regular file or a pipe$"):
        load_kubeconfig(write("config", kubeconfig(user={"tokenFile": "/dev/zero"})))


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"^stat /nonexistent: no such file or directory$"):
        load_kubeconfig("/nonexistent")
    with pytest.raises(KubeconfigError, match=f'^error loading config file "{tmp_path}": read {tmp_path}: is a direct'):
        load_kubeconfig(str(tmp_path))


def test_unknown_fields_and_duplicate_keys_pass(write: Write) -> None:
    text = kubeconfig(foo="bar") + "\n"
    text = text.replace('"token": "t"', '"token": "first", "zed": 1, "token": "last"')
    assert load_kubeconfig(write("config", text)).token == "last"


def test_a_missing_user_is_anonymous(write: Write) -> None:
    settings = load_kubeconfig(write("config", kubeconfig(users=[])))
    assert (settings.server, settings.namespace, settings.token) == ("https://127.0.0.1:1", "ns", "")


def test_relative_files_start_from_the_kubeconfigs_directory(write: Write, tmp_path: Path, pem: dict[str, str]) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca", "cert", "key"):
        write(f"pki/{name}", base64.b64decode(pem[name]))
    write("pki/token", "secret\n")
    files = {"client-certificate": "pki/cert", "client-key": "pki/key", "tokenFile": "pki/token"}
    settings = load_kubeconfig(
        write("config", kubeconfig(cluster={**HTTPS, "certificate-authority": "pki/ca"}, user=files))
    )
    assert settings.tls.files == tuple(str(tmp_path / "pki" / name) for name in ("ca", "cert", "key"))
    assert (settings.token, settings.token_file) == ("secret", str(tmp_path / "pki" / "token"))


def test_data_wins_over_the_file_of_the_same_thing(write: Write, pem: dict[str, str]) -> None:
    cluster = {**HTTPS, "certificate-authority-data": pem["ca"], "certificate-authority": "/nope"}
    user = {"client-certificate-data": pem["cert"], "client-key-data": pem["key"], "client-key": "/nope"}
    settings = load_kubeconfig(write("config", kubeconfig(cluster=cluster, user=user)))
    assert settings.tls.files == ()


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        ({"client-certificate-data": "cert", "client-key-data": "other key"}, "private key does not match public key"),
        ({"client-certificate-data": "junk", "client-key-data": "key"}, "failed to find any PEM data in certificate"),
        ({"client-certificate-data": "cert", "client-key-data": "junk"}, "failed to find any PEM data in key input"),
    ],
)
def test_a_mismatched_certificate_and_key_are_refused(
    write: Write, pem: dict[str, str], authority: trustme.CA, user: dict[str, str], problem: str
) -> None:
    other = base64.b64encode(authority.issue_cert("other").private_key_pem.bytes()).decode()
    texts = pem | {"junk": NOT_A_CERTIFICATE, "other key": other}
    config = kubeconfig(user={key: texts[value] for key, value in user.items()})
    with pytest.raises(KubeconfigError, match=f"^tls: {problem}"):
        load_kubeconfig(write("config", config))


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("http://h:8080", "http://h:8080"),
        ("https://h/prefix/?a=b#c", "https://h/prefix"),
        ("h:8080", "http://h:8080"),
        ("https://[::1]:6443/", "https://[::1]:6443"),
    ],
)
def test_server_addresses_are_normalised(write: Write, server: str, expected: str) -> None:
    assert load_kubeconfig(write("config", kubeconfig(cluster={"server": server}))).server == expected


def test_a_bare_address_with_tls_settings_means_https(write: Write, pem: dict[str, str]) -> None:
    cluster = {"server": "h:6443", "certificate-authority-data": pem["ca"]}
    assert load_kubeconfig(write("config", kubeconfig(cluster=cluster))).server == "https://h:6443"


def test_the_master_takes_the_place_of_the_server_and_of_the_name_in_its_certificate(write: Write) -> None:
    path = write("config", kubeconfig(cluster={**HTTPS, "tls-server-name": "old"}))
    settings = load_kubeconfig(path, master="https://10.0.0.1:6443")
    assert (settings.server, settings.tls.server_name, settings.token) == ("https://10.0.0.1:6443", "", "t")


def test_a_master_alone_is_enough() -> None:
    assert load_kubeconfig("", master="http://127.0.0.1:8001").server == "http://127.0.0.1:8001"


@pytest.mark.parametrize("cluster", [None, {"server": "https://h"}, {"server": "https://h", "tls-server-name": "x"}])
def test_a_master_without_a_scheme_means_http_unless_there_are_tls_settings(
    write: Write, pem: dict[str, str], cluster: dict[str, Any] | None
) -> None:
    path = write("config", kubeconfig(cluster=cluster)) if cluster else ""
    assert load_kubeconfig(path, master="nonsense").server == "http://nonsense"
    with pytest.raises(KubeconfigError, match=r'^parse "http://nonsense::": invalid port "::" after host$'):
        load_kubeconfig(path, master="nonsense::")
    for tls in ({"certificate-authority-data": pem["ca"]}, {"insecure-skip-tls-verify": True}):
        path = write("config", kubeconfig(cluster={**(cluster or {}), **tls}))
        assert load_kubeconfig(path, master="nonsense").server == "https://nonsense"


def test_without_kubeconfig_and_master_an_in_cluster_environment_is_required(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig("", environ={})
    assert str(caught.value) == NO_CONFIGURATION
    assert caplog.messages[-1] == (
        "error creating inClusterConfig, falling back to default config: unable to load in-cluster configuration, "
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )


def test_in_a_cluster_the_service_account_is_used(write: Write, tmp_path: Path, authority: trustme.CA) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match=r"token: no such file or directory$"):
        in_cluster_settings(environ, service_account=tmp_path)
    write("token", "abc\n")
    assert in_cluster_settings(environ, service_account=tmp_path).tls.ca_file == ""
    write("ca.crt", "x")
    settings = in_cluster_settings(environ, service_account=tmp_path)
    assert settings.server == "https://[fd00::1]:443"
    assert settings.token_file == str(tmp_path / "token")
    write("ca.crt", authority.cert_pem.bytes())
    assert load_kubeconfig("", environ=environ, service_account=tmp_path).token == "abc"
    assert settings.tls.ca_file == str(tmp_path / "ca.crt")


def test_exec_info_has_the_cluster_only_if_provide_cluster_info_is_set(write: Write, pem: dict[str, str]) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {**HTTPS, "certificate-authority-data": pem["ca"], "extensions": [extension]}
    plugin = {**V1, "command": "./bin/get-token", "provideClusterInfo": True, "env": [{"name": "A", "value": "b"}]}
    asked = load_kubeconfig(write("config", kubeconfig(cluster=cluster, user={"exec": plugin}))).exec_plugin
    assert asked is not None
    assert asked.command.endswith("/bin/get-token")
    assert asked.command.startswith("/")
    assert asked.env == (("A", "b"),)
    assert asked.cluster_info == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": pem["ca"],
        "config": {"audience": "x"},
    }
    silent = load_kubeconfig(write("config", kubeconfig(cluster=cluster, user={"exec": V1}))).exec_plugin
    assert silent is not None
    assert (silent.command, silent.cluster_info) == ("get-token", None)


def test_v1beta1_exec_plugins_need_no_interactive_mode(write: Write) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "x"}
    loaded = load_kubeconfig(write("config", kubeconfig(user={"exec": plugin}))).exec_plugin
    assert loaded is not None
    assert loaded.interactive_mode == "IfAvailable"


def test_secrets_do_not_show_when_settings_are_printed(write: Write) -> None:
    text = kubeconfig(user={"username": "me", "password": "hunter2"})
    assert "hunter2" not in repr(load_kubeconfig(write("config", text)))
