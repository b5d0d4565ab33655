"""Credentials and addresses as files and programs can contain them: any bytes, any characters."""

import base64
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
from file_writer import Write
from kubeconfig_text import kubeconfig
from trio.testing import MockClock

from trio_sched.kube_client.credentials import token_file
from trio_sched.kube_client.credentials.credentials import Credentials, check_credentials
from trio_sched.kube_client.credentials.exec_plugin import ExecPlugin, parse_credential
from trio_sched.kube_client.errors import CredentialsError, KubeconfigError
from trio_sched.kube_client.http.dialer import Dialer
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig
from trio_sched.kube_client.settings import ConnectionSettings, ExecSettings, Impersonation

V1 = "client.authentication.k8s.io/v1"
SERVER = "https://127.0.0.1:1"
HTTPS = {"server": SERVER}


def authorization(credentials: Credentials) -> bytes:
    headers = credentials.current()
    assert headers is not None
    return dict(headers).get(b"Authorization", b"")


def refusal(write: Write, **document: Any) -> str:
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(write("config", kubeconfig(**document)))
    return str(caught.value)


# --- tokens ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", 'read empty token from file "{path}"'),
        (b" \r\n", 'read empty token from file "{path}"'),
        (b"s3cr3t\xff", 'failed to read token file "{path}": it is not UTF-8 text'),
        (b"s3cr3t\r\nX-Admin: yes", 'token file "{path}": the token has a control character at position 7'),
        (b"s3cr\x00et", 'token file "{path}": the token has a control character at position 5'),
        (b"s3cr3t" * 200_000, 'failed to read token file "{path}": open {path}: it is larger than 1048576 bytes'),
    ],
)
def test_a_token_file_without_a_usable_token_keeps_the_scheduler_from_starting(
    write: Write, content: bytes, error: str
) -> None:
    path = write("token", content)
    text = refusal(write, user={"tokenFile": path})
    assert text == error.format(path=path)
    assert "s3cr" not in text


@pytest.mark.parametrize("content", [b"", b"s3cr3t\xff", b"s3cr3t\nX-Admin: yes"])
async def test_a_token_file_that_becomes_unusable_leaves_the_last_good_token_in_use(
    write: Write, mock_clock: MockClock, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = write("token", "good")
    credentials = Credentials(ConnectionSettings(server=SERVER, token_file=path))
    assert authorization(credentials) == b"Bearer good"
    write("token", content)
    mock_clock.jump(60)
    assert authorization(credentials) == b"Bearer good"
    assert "using the previous token" in caplog.text
    assert "s3cr3t" not in caplog.text


@pytest.mark.parametrize("content", ["", "s3cr3t\nX-Admin: yes"])
def test_a_service_account_without_a_usable_token_keeps_the_scheduler_from_starting(
    write: Write, tmp_path: Path, content: str
) -> None:
    path = write("token", content)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig("", environ=environ, service_account=tmp_path)
    assert path in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_an_address_in_the_environment_of_a_pod_is_checked(write: Write, tmp_path: Path) -> None:
    write("token", "t")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "tcp"}
    with pytest.raises(KubeconfigError, match=r'^parse "https://10.0.0.1:tcp": invalid port ":tcp" after host$'):
        load_kubeconfig("", environ=environ, service_account=tmp_path)


def test_a_token_with_a_line_break_in_a_kubeconfig_is_refused(write: Write) -> None:
    text = refusal(write, user={"token": "s3cr3t\r\nX-Admin: yes"})
    assert text == (
        'net/http: invalid header field value for "Authorization": the token has a control character at position 7'
    )


def test_a_user_to_impersonate_cannot_add_headers() -> None:
    for who in (
        Impersonation(user="a\r\nX: y"),
        Impersonation(user="a", uid="\n"),
        Impersonation(user="a", groups=("b", "\0")),
        Impersonation(user="a", extra=(("k", ("v\n",)),)),
    ):
        for server in (SERVER, "http://127.0.0.1:1"):
            with pytest.raises(KubeconfigError, match=r'^net/http: invalid header field value for "Impersonate-'):
                check_credentials(ConnectionSettings(server=server, impersonation=who))


@pytest.mark.parametrize("user", [{"username": "mé:\r\n", "password": "p\x00ä\n"}, {"username": "", "password": "x"}])
def test_odd_characters_in_a_username_and_a_password_are_encoded(write: Write, user: dict[str, str]) -> None:
    settings = load_kubeconfig(write("config", kubeconfig(user=user)))
    sent = authorization(Credentials(settings)).removeprefix(b"Basic ")
    assert base64.b64decode(sent) == f"{user['username']}:{user['password']}".encode()


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"token": "s3cr3t\r\nX: y"}, "status.token has a control character at position 7"),
        ({"token": "s3cr3t\ud800"}, "status.token: it is not UTF-8 text"),
        ({"clientCertificateData": "\ud800", "clientKeyData": "s3cr3t"}, "status.clientCertificateData: it is not UTF"),
        ({"token": ["s3cr3t"]}, "status.token: expected text, got an array"),
        ({"token": 531337}, "status.token: expected text, got a number"),
    ],
)
def test_an_unusable_credential_of_an_exec_plugin_is_reported_without_its_text(
    status: dict[str, Any], problem: str
) -> None:
    document = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
    with pytest.raises(CredentialsError) as caught:
        parse_credential(json.dumps(document).encode(), api_version=V1)
    text = str(caught.value)
    assert text.startswith(f"getting credentials: decoding stdout: {problem}")
    assert "s3cr3t" not in text
    assert "531337" not in text


@pytest.mark.parametrize(
    "settings",
    [
        ExecSettings(api_version=V1, command="a\0b", interactive_mode="Never"),
        ExecSettings(api_version=V1, command="true", args=("a\0b",), interactive_mode="Never"),
        ExecSettings(api_version=V1, command="true", env=(("A", "s3cr3t\0"),), interactive_mode="Never"),
        ExecSettings(api_version=V1, command="true", env=(("A=B", "s3cr3t"),), interactive_mode="Never"),
    ],
)
async def test_an_exec_plugin_that_no_process_can_be_started_for_is_an_error(settings: ExecSettings) -> None:
    with pytest.raises(CredentialsError, match=r"^getting credentials: exec: ") as caught:
        await ExecPlugin(settings).credential()
    assert "s3cr3t" not in str(caught.value)


# --- files and data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({**HTTPS, "certificate-authority": "a\0b"}, {}),
        (HTTPS, {"tokenFile": "a\0b"}),
        (HTTPS, {"client-certificate": "a\0b", "client-key": "a\0b"}),
    ],
)
def test_a_nul_in_a_path_is_an_invalid_argument(write: Write, cluster: dict[str, Any], user: dict[str, Any]) -> None:
    text = refusal(write, cluster=cluster, user=user)
    assert r"a\x00b: invalid argument" in text
    assert "\0" not in text


def test_a_nul_in_the_path_of_the_kubeconfig_is_an_invalid_argument() -> None:
    with pytest.raises(KubeconfigError, match=r"invalid argument$"):
        load_kubeconfig("a\0b")


@pytest.mark.parametrize("field", ["certificate-authority-data", "client-certificate-data", "client-key-data"])
@pytest.mark.parametrize("data", ["ü", "YQ=", "Y Q=="])
def test_data_that_is_no_base64_is_an_error_of_the_file(write: Write, field: str, data: str) -> None:
    part = "cluster" if field.startswith("certificate") else "user"
    text = refusal(write, **{part: {**HTTPS, field: data} if part == "cluster" else {field: data}})
    assert "error loading config file" in text
    assert "illegal base64 data at input byte" in text


def test_a_certificate_and_a_key_that_were_swapped_are_refused(write: Write, authority: trustme.CA) -> None:
    leaf = authority.issue_cert("client")
    certificate = base64.b64encode(leaf.cert_chain_pems[0].bytes()).decode()
    key = base64.b64encode(leaf.private_key_pem.bytes()).decode()
    assert refusal(write, user={"client-certificate-data": key, "client-key-data": certificate}) == (
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
        "PEM inputs may have been switched"
    )
    assert refusal(write, user={"client-certificate-data": certificate, "client-key-data": certificate}) == (
        "tls: found a certificate rather than a key in the PEM for the private key"
    )


def test_a_certificate_and_a_key_in_one_file_are_found_there(write: Write, authority: trustme.CA) -> None:
    leaf = authority.issue_cert("client")
    both = leaf.private_key_and_cert_chain_pem.bytes()
    user = dict.fromkeys(("client-certificate-data", "client-key-data"), base64.b64encode(both).decode())
    tls = load_kubeconfig(write("config", kubeconfig(user=user))).tls
    assert (tls.client_certificate_data, tls.client_key_data) == (both, both)


def test_a_name_for_the_certificate_that_is_no_host_name_is_refused(write: Write) -> None:
    for name in ("a..b", ".a", "a" * 64, "a\0b"):
        text = refusal(write, cluster={**HTTPS, "tls-server-name": name})
        assert text.startswith('invalid configuration: invalid tls-server-name "')


@pytest.mark.parametrize(
    "text",
    [
        b"users: " + b"[" * 100_000,
        b"users: " + b"[" * 5_000 + b"]" * 5_000,
        b"a: 2001-99-99",
        b"a: " + b"1" * 5_000,
        b"users: [{name: u, user: {password: !s3cr3t x}}]",
        b"users: [{name: u, user: {password: *s3cr3t}}]",
        b"users: [{name: u, user: {password: 's3cr3t}}]",
        b"users: [{name: u, user: {password: s3cr3t\xff}}]",
        b"? [a]\n: b",
    ],
)
def test_a_kubeconfig_that_yaml_cannot_read_is_an_error_of_the_file_without_its_values(
    write: Write, text: bytes
) -> None:
    path = write("config", text)
    with pytest.raises(KubeconfigError) as caught:
        load_kubeconfig(path)
    assert str(path) in str(caught.value) or "no configuration has been provided" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


def test_the_password_of_a_proxy_is_not_shown(write: Write) -> None:
    for url in (
        "ftp://me:s3cr3t@h",
        "http://me:s3cr3t@h:port",
        "http://me:s3/cr3t@h",
        "//me:s3cr3t@h",
        "http://me:s3cr3t@[x",
    ):
        text = refusal(write, cluster={**HTTPS, "proxy-url": url})
        assert "me:xxxxx@h" in text or "me:xxxxx@[x" in text, text
        assert "s3cr3t" not in text
        assert "cr3t" not in text


def test_the_password_of_a_proxy_in_the_environment_is_not_shown() -> None:
    settings = ConnectionSettings(server=SERVER.replace("127.0.0.1", "h"))
    with pytest.raises(KubeconfigError) as caught:
        Dialer(settings, TlsSource(settings.tls), {"HTTPS_PROXY": "http://me:s3cr3t@h:s3cr3t"})
    assert "s3cr3t" not in str(caught.value)


async def test_an_unusable_certificate_of_an_exec_plugin_is_not_kept(write: Write, authority: trustme.CA) -> None:
    def print_certificate(certificate: str, key: str) -> None:
        status = {"clientCertificateData": certificate, "clientKeyData": key}
        document = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
        write("plugin.py", f"print({json.dumps(document)!r})")

    print_certificate("junk", "junk")
    plugin = ExecSettings(
        api_version=V1, command=sys.executable, args=(write("plugin.py", ""),), interactive_mode="Never"
    )
    print_certificate("junk", "junk")
    settings = ConnectionSettings(server=SERVER, exec_plugin=plugin)
    tls = TlsSource(settings.tls)
    context = tls.context()
    credentials = Credentials(settings, tls)
    for _ in range(2):
        with pytest.raises(CredentialsError, match="failed to find any PEM data"):
            await credentials.refresh()
        assert credentials.current() is None
    assert tls.context() is context
    assert not tls.reload()
    leaf = authority.issue_cert("client")
    print_certificate(leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode())
    await credentials.refresh()
    assert tls.context() is not context


def test_a_token_can_come_from_a_pipe(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("from-a-pipe\n",))
    writer.start()
    try:
        settings = load_kubeconfig(
            write("config", kubeconfig(cluster={"server": "https://h"}, user={"tokenFile": str(path)}))
        )
    finally:
        writer.join()
    assert settings.token == "from-a-pipe"


def test_a_pipe_that_is_not_closed_does_not_block_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "_PIPE_WAIT_SECONDS", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    os.write(writer, b"half")
    try:
        with pytest.raises(CredentialsError, match=r"pipe: whoever writes to this pipe does not close it for 0\.01 s$"):
            token_file.read_token(str(path))
    finally:
        os.close(writer)


async def test_a_token_file_without_a_token_is_not_read_for_every_request(
    write: Write, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("token", "good")
    credentials = Credentials(ConnectionSettings(server=SERVER, token_file=path))
    authorization(credentials)
    write("token", "")
    mock_clock.jump(60)
    for _ in range(3):
        assert authorization(credentials) == b"Bearer good"
    assert caplog.text.count("using the previous token") == 1
    write("token", "new")
    mock_clock.jump(token_file.RETRY_SECONDS)
    assert authorization(credentials) == b"Bearer new"
