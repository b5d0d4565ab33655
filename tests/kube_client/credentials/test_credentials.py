import contextlib
import json
import os
import resource
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from attrs import evolve
from file_writer import Write
from raw_server import Exchange, StartServer
from trio.testing import MockClock

from trio_sched import open_files
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.credentials import exec_plugin
from trio_sched.kube_client.credentials.credentials import Credentials, impersonation_headers
from trio_sched.kube_client.credentials.exec_plugin import ExecPlugin, parse_credential
from trio_sched.kube_client.errors import CredentialsError, Unauthorized
from trio_sched.kube_client.settings import ConnectionSettings, ExecSettings, Impersonation, TlsSettings

V1 = "client.authentication.k8s.io/v1"
SERVER = "https://127.0.0.1:1"


def authorization(credentials: Credentials) -> bytes:
    headers = credentials.current()
    assert headers is not None
    return dict(headers).get(b"Authorization", b"")


async def test_a_token_file_is_read_again_after_fifty_seconds(write: Write, mock_clock: MockClock) -> None:
    path = write("token", "one\n")
    credentials = Credentials(ConnectionSettings(server=SERVER, token_file=path))
    assert authorization(credentials) == b"Bearer one"
    write("token", "two")
    mock_clock.jump(49)
    assert authorization(credentials) == b"Bearer one"
    mock_clock.jump(2)
    assert authorization(credentials) == b"Bearer two"


async def test_the_last_good_token_survives_a_bad_file(write: Write, mock_clock: MockClock) -> None:
    path = write("token", "one")
    credentials = Credentials(ConnectionSettings(server=SERVER, token_file=path))
    authorization(credentials)
    write("token", " \n")
    mock_clock.jump(60)
    assert authorization(credentials) == b"Bearer one"


async def test_an_unreadable_token_file_falls_back_to_the_token_or_fails(caplog: pytest.LogCaptureFixture) -> None:
    with_fallback = Credentials(ConnectionSettings(server=SERVER, token="static", token_file="/nope"))
    assert authorization(with_fallback) == b"Bearer static"
    assert 'failed to read token file "/nope": open /nope: no such file or directory' in caplog.text
    with pytest.raises(CredentialsError, match="failed to read token file"):
        Credentials(ConnectionSettings(server=SERVER, token_file="/nope")).current()


async def test_a_refused_token_is_read_again_at_once(write: Write) -> None:
    path = write("token", "one")
    credentials = Credentials(ConnectionSettings(server=SERVER, token_file=path))
    authorization(credentials)
    write("token", "two")
    await credentials.refused(trio.current_time() + 1)
    assert authorization(credentials) == b"Bearer two"


def test_basic_authentication_is_sent_over_tls_only() -> None:
    login = {"username": "me", "password": "pw"}
    assert authorization(Credentials(ConnectionSettings(server=SERVER, **login))) == b"Basic bWU6cHc="
    assert authorization(Credentials(ConnectionSettings(server="http://127.0.0.1:1", **login))) == b""


def test_impersonation_repeats_groups_and_escapes_keys() -> None:
    who = Impersonation(user="jane", uid="7", groups=("a", "b"), extra=(("example.com/Scope", ("x", "y")),))
    assert impersonation_headers(who) == [
        (b"Impersonate-User", b"jane"),
        (b"Impersonate-Uid", b"7"),
        (b"Impersonate-Group", b"a"),
        (b"Impersonate-Group", b"b"),
        (b"Impersonate-Extra-example.com%2Fscope", b"x"),
        (b"Impersonate-Extra-example.com%2Fscope", b"y"),
    ]


def script(write: Write, body: str) -> ExecSettings:
    """A plugin that is a Python program; it counts its runs in the file ``runs``."""
    path = write("plugin.py", f"import json, os, pathlib, sys\nhere = pathlib.Path(__file__).parent\n{body}")
    return ExecSettings(
        api_version=V1, command=sys.executable, args=(path,), interactive_mode="Never", env=(("MINE", "yes"),)
    )


COUNTING = f"""
runs = here / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
(here / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
status = {{"token": os.environ["MINE"] + str(len(runs.read_text()))}}
status |= json.loads((here / "extra").read_text()) if (here / "extra").exists() else {{}}
print(json.dumps({{"kind": "ExecCredential", "apiVersion": "{V1}", "status": status}}))
"""


async def test_an_exec_plugin_runs_once_for_all_requests_and_gets_exec_info(write: Write, tmp_path: Path) -> None:
    plugin = ExecPlugin(script(write, COUNTING))
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(plugin.credential)
    assert (await plugin.credential()).token == "yes1"
    assert json.loads((tmp_path / "info").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux has it")
async def test_an_exec_plugin_may_open_as_many_files_as_the_scheduler_at_its_start(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(open_files, "_AT_START", (77, hard))
    wait = (
        f"import resource, time\nwhile resource.getrlimit(resource.RLIMIT_NOFILE) != (77, {hard}): time.sleep(0.01)\n"
    )
    with trio.fail_after(20):
        assert (await ExecPlugin(script(write, wait + COUNTING)).credential()).token == "yes1"


async def test_an_expired_exec_credential_is_fetched_again(write: Write) -> None:
    write("extra", '{"expirationTimestamp": "2001-01-01T00:00:00Z"}')
    plugin = ExecPlugin(script(write, COUNTING))
    assert (await plugin.credential()).token == "yes1"
    assert (await plugin.credential()).token == "yes2"


async def test_a_401_reruns_the_exec_plugin_for_the_next_request(write: Write, start_server: StartServer) -> None:
    async def only_second(exchange: Exchange) -> None:
        accepted = exchange.request.headers.get("authorization") == "Bearer yes2"
        await exchange.answer(status=200 if accepted else 401)

    server = await start_server(only_second, tls=True)
    base = server.settings
    settings = ConnectionSettings(server=base.server, tls=base.tls, exec_plugin=script(write, COUNTING))
    async with connect(settings) as client:
        with pytest.raises(Unauthorized):
            await client.call(b"GET", b"/x")
        assert await client.call(b"GET", b"/x") == b"{}"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("sys.exit(3)", "failed with exit code 3"),
        ("print('hello')", "decoding stdout: "),
    ],
)
async def test_a_failing_exec_plugin_is_named(write: Write, body: str, problem: str) -> None:
    with pytest.raises(CredentialsError, match=problem):
        await ExecPlugin(script(write, body)).credential()


async def test_a_missing_exec_plugin_comes_with_its_hint_once_an_hour(mock_clock: MockClock) -> None:
    plugin = ExecPlugin(
        ExecSettings(api_version=V1, command="/no/such", install_hint="get it", interactive_mode="Never")
    )
    texts = []
    for jump in (0, 60, 3600):
        mock_clock.jump(jump)
        with pytest.raises(CredentialsError) as caught:
            await plugin.credential()
        texts.append(str(caught.value))
    missing = "getting credentials: exec: executable /no/such not found"
    assert texts == [f"{missing}\n\nget it", missing, f"{missing}\n\nget it"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"apiVersion": {"a": "\n"}}, "decoding stdout: apiVersion: expected text, got an object"),
        ({"apiVersion": "v2"}, f"exec plugin is configured to use API version {V1}, plugin returned version v2"),
        ({"status": None}, "exec plugin didn't return a status field"),
        ({"status": {}}, "exec plugin didn't return a token or cert/key pair"),
        ({"status": {"clientKeyData": "k"}}, "exec plugin returned only certificate or key, not both"),
        ({"status": {"token": 5}}, "decoding stdout: status.token: expected text, got a number"),
        (
            {"status": {"token": "t", "expirationTimestamp": "soon"}},
            "decoding stdout: expirationTimestamp: it is no time ",
        ),
        ({"kind": "Pod"}, "decoding stdout: expected an object of kind ExecCredential"),
    ],
)
def test_invalid_output_of_an_exec_plugin_is_reported(changes: dict[str, Any], problem: str) -> None:
    document = {"kind": "ExecCredential", "apiVersion": V1, "status": {"token": "t"}} | changes
    with pytest.raises(CredentialsError) as caught:
        parse_credential(json.dumps(document).encode(), api_version=V1)
    assert str(caught.value).startswith(f"getting credentials: {problem}")


def test_output_of_a_plugin_that_is_nested_too_deep_is_a_clear_error() -> None:
    with pytest.raises(CredentialsError, match=r"^getting credentials: decoding stdout: exceeded max depth$"):
        parse_credential(b'{"status":' + b"[" * 60_000, api_version=V1)


def test_output_of_a_plugin_that_python_cannot_convert_is_a_clear_error() -> None:
    with pytest.raises(CredentialsError, match=r"^getting credentials: decoding stdout: it is not UTF-8 text$"):
        parse_credential(b'"\xff', api_version=V1)
    document = b'{"kind": "ExecCredential", "apiVersion": "%b", "status": {"token": %b}}'
    with pytest.raises(CredentialsError, match=r"status\.token: expected text, got a number$"):
        parse_credential(document % (V1.encode(), b"9" * 5000), api_version=V1)


async def test_a_plugin_that_prints_without_end_is_ended(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "MAX_OUTPUT_BYTES", 100_000)
    endless = "while True: sys.stdout.write('x' * 1000)"
    with pytest.raises(CredentialsError, match=r"^getting credentials: exec: executable .* printed more than 100000 b"):
        await ExecPlugin(script(write, endless)).credential()


async def test_a_plugin_that_does_not_end_is_named_and_killed_when_it_is_not_needed(
    tmp_path: Path, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    deaf = f"trap '' TERM; echo $$ > '{started}'; while :; do read -r x < '{started}'; done"
    settings = ExecSettings(api_version=V1, command="/bin/sh", args=("-c", deaf), interactive_mode="Never")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ExecPlugin(settings).credential)
        process_id = int(await trio.to_thread.run_sync(started.read_text))
        mock_clock.autojump_threshold = 0.0  # not before: time would pass while the process is started
        await trio.sleep(25)
        nursery.cancel_scope.cancel()
    assert trio.current_time() <= 25 + exec_plugin.TERMINATION_SECONDS + 0.1
    assert "getting credentials: exec: /bin/sh runs since 10 s; requests wait for it" in caplog.text
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


async def test_a_certificate_from_an_exec_plugin_is_used_and_its_successor_on_a_new_connection(
    write: Write, authority: trustme.CA, nursery: trio.Nursery
) -> None:
    shown: list[str] = []

    async def talk(stream: trio.SSLStream[trio.SocketStream]) -> None:
        await stream.do_handshake()
        shown.append(stream.getpeercert()["subjectAltName"][0][1])
        with contextlib.suppress(trio.BrokenResourceError):  # clients hang up without a goodbye
            while await stream.receive_some():
                await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def issue(name: str, expires: str) -> None:
        leaf = authority.issue_cert(name)
        status = {
            "token": "",
            "clientCertificateData": leaf.cert_chain_pems[0].bytes().decode(),
            "clientKeyData": leaf.private_key_pem.bytes().decode(),
            "expirationTimestamp": expires,
        }
        write("extra", json.dumps(status))

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listeners: Any = await nursery.start(trio.serve_ssl_over_tcp, talk, 0, context)
    port = listeners[0].transport_listener.socket.getsockname()[1]
    settings = ConnectionSettings(
        server=f"https://127.0.0.1:{port}",
        tls=TlsSettings(ca_data=authority.cert_pem.bytes()),
        exec_plugin=script(write, COUNTING),
    )
    async with connect(settings) as client:
        issue("one.test", "2001-01-01T00:00:00Z")
        await client.call(b"POST", b"/x")
        issue("two.test", "2999-01-01T00:00:00Z")
        await client.call(b"POST", b"/x")
        await client.call(b"POST", b"/x")
    assert shown == ["one.test", "two.test"]


async def test_an_invalid_certificate_is_an_error_of_the_exec_plugin(write: Write, start_server: StartServer) -> None:
    async def unreachable(exchange: Exchange) -> None:
        raise AssertionError("no request can get here")

    write("extra", '{"clientCertificateData": "junk", "clientKeyData": "junk"}')
    server = await start_server(unreachable, tls=True)
    settings = evolve(server.settings, exec_plugin=script(write, COUNTING))
    async with connect(settings) as client:
        with pytest.raises(CredentialsError, match="getting credentials: tls: failed to find any PEM data"):
            await client.call(b"POST", b"/x")
