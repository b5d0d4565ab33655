import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
import trio

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulator import ApiServer, load_manifests, populate, run_kubelets, serve

InstallPlugin = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MASTER = "--master=http://127.0.0.1:1"
NO_PORT = "--secure-port=0"
PICKY = """
from trio_sched.plugin_api import hookimpl, unschedulable

class Picky:
    name = "Picky"
    def __init__(self, args, handle): pass
    @hookimpl
    def filter_node(self, pod, node):
        return unschedulable("node(s) were not b") if node.name != "b" else None
"""


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    def write(body: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(HEAD + body)
        return f"--config={path}"

    return write


def command_failed(capsys: Capture) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if '"command failed"' in line]
    places = r'( place="[^"]*")?( hint="[^"]*")?'
    found = re.fullmatch(rf'E\d{{4}} [\d:.]+ +\d+ run\.py:\d+\] "command failed" err=("(?:[^"\\]|\\.)*"){places}', line)
    assert found, line
    return json.loads(found[1])


def test_a_start_that_is_refused_is_one_log_line(capsys: Capture, config: Callable[[str], str]) -> None:
    assert main([MASTER, NO_PORT, config("parallelism: 0\n")]) == ExitCode.FAILURE
    assert command_failed(capsys).startswith("parallelism: Invalid value: 0")


def test_the_line_is_json_where_the_log_is(capsys: Capture, config: Callable[[str], str]) -> None:
    assert main([MASTER, NO_PORT, config("parallelism: 0\n"), "--logging-format=json"]) == ExitCode.FAILURE
    line = json.loads(capsys.readouterr().err)
    assert line["msg"] == "command failed"
    assert line["err"].startswith("parallelism: Invalid value: 0")
    assert "v" not in line


def test_contradictory_logging_flags_are_told_without_a_log(capsys: Capture) -> None:
    assert main([MASTER, NO_PORT, "--logging-format=foo"]) == ExitCode.FAILURE
    assert capsys.readouterr().err == 'format: Invalid value: "foo": Unsupported log format\n'


def test_the_effective_configuration_is_written_and_reads_back(tmp_path: Path, capsys: Capture) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    assert main([MASTER, NO_PORT, f"--write-config-to={first}"]) == ExitCode.OK
    assert f'"Wrote configuration" file="{first}"' in capsys.readouterr().err
    assert main([MASTER, NO_PORT, f"--config={first}", f"--write-config-to={second}"]) == ExitCode.OK
    assert first.read_text() == second.read_text()
    assert "- name: VolumeBinding\n" in first.read_text()


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "nowhere" / "x"
    assert main([MASTER, NO_PORT, f"--write-config-to={path}"]) == ExitCode.FAILURE
    assert command_failed(capsys) == f"open {path}: no such file or directory"


def test_a_plugin_that_nobody_has_installed_is_named_with_the_mend(
    capsys: Capture, config: Callable[[str], str]
) -> None:
    body = "profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinty}]}}}]\n"
    assert main([MASTER, NO_PORT, config(body)]) == ExitCode.FAILURE
    said = command_failed(capsys)
    assert "no installed distribution offers a plugin named 'NodeAffinty'; did you mean 'NodeAffinity'?" in said


CONFIGURED = """
from attrs import frozen
from trio_sched.plugin_api import hookimpl

@frozen(kw_only=True)
class Args:
    zones: tuple[str, ...] = ()

class Zoned:
    name = "Zoned"
    Args = Args

    def __init__(self, args, handle):
        pass

    @hookimpl
    def score(self, pod, nodes):
        return nodes.pod_count
"""


def test_a_plugin_that_nobody_has_installed_is_named_with_file_and_path(
    capsys: Capture, config: Callable[[str], str]
) -> None:
    refs = "[{name: NodeName}, {name: Unheard}]"
    body = f"profiles: [{{schedulerName: a}}, {{schedulerName: b, plugins: {{multiPoint: {{enabled: {refs}}}}}}}]\n"
    flag = config(body)
    assert main([MASTER, NO_PORT, flag]) == ExitCode.FAILURE
    place = "profiles[1].plugins.multiPoint.enabled[1].name"
    said = command_failed(capsys)
    assert said.startswith(f"{flag.removeprefix('--config=')}: {place}: no installed distribution offers")
    assert "did you mean" not in said


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("{zones: eu-1}", "profiles[0].pluginConfig[1].args.zones: expected a list, got 'eu-1' (plugin 'Zoned')"),
        ("{zone: []}", "profiles[0].pluginConfig[1].args.zone: unknown field; did you mean 'zones'? (plugin 'Zoned')"),
    ],
)
def test_wrong_arguments_of_a_plugin_are_told_with_file_and_path_before_anything_is_connected(
    args: str, problem: str, install_plugin: InstallPlugin, capsys: Capture, config: Callable[[str], str]
) -> None:
    install_plugin("Zoned", CONFIGURED)
    entries = f"[{{name: NodeAffinity, args: {{}}}}, {{name: Zoned, args: {args}}}]"
    flag = config(f"profiles: [{{plugins: {{score: {{enabled: [{{name: Zoned}}]}}}}, pluginConfig: {entries}}}]\n")
    assert main([MASTER, NO_PORT, flag]) == ExitCode.FAILURE
    assert command_failed(capsys) == f"{flag.removeprefix('--config=')}: {problem}"


def test_arguments_of_a_plugin_that_takes_none_are_told_with_file_and_path(
    capsys: Capture, config: Callable[[str], str]
) -> None:
    flag = config("profiles: [{pluginConfig: [{name: ImageLocality, args: {a: 1}}]}]\n")
    assert main([MASTER, NO_PORT, flag]) == ExitCode.FAILURE
    assert command_failed(capsys) == (
        f"{flag.removeprefix('--config=')}: profiles[0].pluginConfig[0]: the plugin takes no arguments; "
        "remove the entry (plugin 'ImageLocality')"
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("NodeAffinty", "; did you mean 'NodeAffinity'?"), ("Unheard", ""), ("NodeFoo", "")]
)
def test_arguments_for_a_plugin_that_is_nowhere_are_told_but_refuse_nothing(
    name: str, hint: str, capsys: Capture, small_cluster: Path, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"{HEAD}profiles: [{{pluginConfig: [{{name: {name}, args: {{a: 1}}}}, {{name: NodeAffinity}}]}}]\n")
    assert main(["simulate", "-f", str(small_cluster), "--config", str(path)]) == ExitCode.OK
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "pluginConfig" in line]
    assert line.endswith(
        f"{path}: profiles[0].pluginConfig[0].name: no profile enables {name!r} and no installed distribution offers "
        f"it, so that these arguments are not used{hint}"
    )


@pytest.mark.parametrize(
    ("content", "err", "place"),
    [
        (b"a:\n  - b\n c: d\n", "yaml: line 2: did not find expected", ", line 3, column 2"),
        (b"a: [b\n\xff]", "yaml: invalid leading UTF-8 octet", ", line 2, column 1: byte 0xff is not UTF-8"),
        (b"{\n 'a': 1}", "couldn't get version/kind; json parse error: invalid character", ", line 2, column 2"),
        (HEAD.encode() + b"parallelism: 0", "parallelism: Invalid value: 0", ""),
    ],
)
def test_beside_kube_schedulers_text_stand_the_file_and_the_place_in_it(
    content: bytes, err: str, place: str, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_bytes(content)
    assert main([MASTER, NO_PORT, f"--config={path}"]) == ExitCode.FAILURE
    said = capsys.readouterr().err
    assert f'err="{err}' in said
    assert f' place="{path}{place}' in said


def test_a_refused_file_comes_with_the_command_that_says_more(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(HEAD + "leaderElecton: {}\n")
    assert main([MASTER, NO_PORT, f"--config={path}"]) == ExitCode.FAILURE
    assert f'hint="`trio-sched check-config {path}` says which lines' in capsys.readouterr().err


def test_a_file_whose_name_is_not_utf_8_is_told_all_the_same(capsys: Capture) -> None:
    assert main([MASTER, NO_PORT, "--config=/nonexistent/\udcff"]) == ExitCode.FAILURE
    assert r"open /nonexistent/\\xff: no such file or directory" in capsys.readouterr().err


def test_a_policy_that_is_given_as_a_configuration_is_told_as_one(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("kind: Policy\napiVersion: v1\n")
    assert main([MASTER, NO_PORT, f"--config={path}"]) == ExitCode.FAILURE
    said = capsys.readouterr().err
    assert 'err="no kind \\"Policy\\" is registered' in said
    assert 'hint="this is a policy; give it with --policy-config-file instead of --config, or use what' in said


def test_a_broken_plugin_stops_only_those_who_enable_it(
    install_plugin: InstallPlugin, capsys: Capture, config: Callable[[str], str], tmp_path: Path
) -> None:
    install_plugin("Broken", "raise RuntimeError('out of order')")
    flag = config("profiles: [{plugins: {multiPoint: {enabled: [{name: Broken}]}}}]\n")
    assert main([MASTER, NO_PORT, flag]) == ExitCode.FAILURE
    assert "failed to import: RuntimeError: out of order" in command_failed(capsys)
    assert main([MASTER, NO_PORT, f"--write-config-to={tmp_path / 'out'}"]) == ExitCode.OK


def test_a_point_that_a_plugin_does_not_extend_is_refused(
    install_plugin: InstallPlugin, capsys: Capture, config: Callable[[str], str]
) -> None:
    install_plugin("Picky", PICKY)
    assert (
        main([MASTER, NO_PORT, config("profiles: [{plugins: {score: {enabled: [{name: Picky}]}}}]\n")])
        == ExitCode.FAILURE
    )
    assert 'plugin "Picky" does not extend ScorePlugin plugin' in command_failed(capsys)


def test_an_installed_plugin_of_somebody_else_filters_until_it_is_uninstalled(
    install_plugin: InstallPlugin,
    capsys: Capture,
    config: Callable[[str], str],
    small_cluster: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flag = config("profiles: [{plugins: {multiPoint: {enabled: [{name: Picky}]}}}]\n")
    folder = install_plugin("Picky", PICKY)
    command = ["simulate", "-f", str(small_cluster), *flag.split("="), "-o", "json"]
    assert main(command) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert {one["pod"]: one["node"] for one in found["placements"]} == {"web-1": "b", "web-2": "b", "db": "b"}
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(folder)])
    assert main(command) == ExitCode.FAILURE
    assert "no installed distribution offers a plugin named 'Picky'" in capsys.readouterr().err


@pytest.fixture
def served_cluster(small_cluster: Path) -> Iterator[tuple[str, ApiServer]]:
    """The simulator on a port, in a thread with an event loop of its own."""
    server = ApiServer()
    populate(server, load_manifests([small_cluster]).manifests)
    started: list[str] = []
    scopes: list[tuple[trio.lowlevel.TrioToken, trio.CancelScope]] = []

    async def live() -> None:
        async with trio.open_nursery() as nursery:
            scopes.append((trio.lowlevel.current_trio_token(), nursery.cancel_scope))
            await nursery.start(run_kubelets, server)
            started.append(await nursery.start(partial(serve, server)))
            ready.write(b"!")

    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as waiting, os.fdopen(writing, "wb", buffering=0) as ready:
        thread = Thread(target=trio.run, args=(live,))
        thread.start()
        waiting.read(1)
        yield started[0], server
        token, scope = scopes[0]
        trio.from_thread.run_sync(scope.cancel, trio_token=token)
        thread.join()


def _run_until(line: str, flags: list[str], *signals: signal.Signals) -> tuple[int, str]:
    """Run the daemon in a process, send it *signals* once it has logged *line*, and wait for its end."""
    return _run_through([(line, signals)], flags)


def _run_through(steps: list[tuple[str, tuple[signal.Signals, ...]]], flags: list[str]) -> tuple[int, str]:
    """The same, with several lines that are waited for one after the other."""
    # Tests run side by side, and there is one port of that number.
    command = [sys.executable, "-m", "trio_sched", "--secure-port=0", *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        seen = ""
        for line, signals in steps:
            for text in process.stderr:
                seen += text
                if line in text:
                    break
            for number in signals:
                process.send_signal(number)
        seen += process.stderr.read()
        return process.wait(), seen


def test_with_an_election_a_signal_ends_the_daemon_in_order(served_cluster: tuple[str, ApiServer]) -> None:
    url, server = served_cluster
    bound = '"Successfully bound pod to node"'
    steps = [(bound, ()), (bound, ()), (bound, (signal.SIGTERM,))]
    code, said = _run_through(steps, [f"--master={url}", "-v=2"])
    assert code == ExitCode.OK, said
    assert '"Successfully acquired lease"' in said
    lease = server.store.get("leases.coordination.k8s.io", "kube-system/kube-scheduler")
    assert lease is not None
    assert not lease.fields["spec"].get("holderIdentity")
    placed = [pod for pod in server.store.collection("pods").objects.values() if pod.fields["spec"].get("nodeName")]
    assert len(placed) == 3


def test_attempts_are_traced_if_the_environment_asks_for_it(
    served_cluster: tuple[str, ApiServer], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    url, _server = served_cluster
    code, said = _run_until("Unable to schedule pod", [f"--master={url}", "-v=2"], signal.SIGTERM)
    assert code == ExitCode.OK, said
    spans = capfd.readouterr().out
    assert spans.count('"name": "scheduling cycle"') >= 4
    assert spans.count('"name": "binding cycle"') == 3


def test_traces_that_are_not_supported_refuse_the_start(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    assert main([MASTER, NO_PORT]) == ExitCode.FAILURE
    assert command_failed(capsys).startswith("OTEL_TRACES_EXPORTER: the exporter 'zipkin' is not supported")


STUBBORN = """
import trio
from trio_sched.daemon import shutdown_watchdog
from trio_sched.plugin_api import hookimpl

shutdown_watchdog.MAX_END_SECONDS = 0.5

class Stubborn:
    name = "Stubborn"
    def __init__(self, args, handle): pass
    @hookimpl
    def score_node(self, pod, node): return 0
    @hookimpl
    async def run(self):
        while True:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                pass
"""


def test_a_plugin_that_cannot_be_cancelled_does_not_keep_the_process_from_ending(
    served_cluster: tuple[str, ApiServer],
    install_plugin: InstallPlugin,
    config: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, _server = served_cluster
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(install_plugin("Stubborn", STUBBORN)), *sys.path]))
    file = config("profiles: [{plugins: {multiPoint: {enabled: [{name: Stubborn}]}}}]\n")
    code, said = _run_until("Successfully acquired lease", [file, f"--master={url}", "--secure-port=0"], signal.SIGTERM)
    assert code == ExitCode.FAILURE
    assert "Exiting although hooks of plugins still run" in said
    assert "run of plugin Stubborn" in said


def test_without_an_election_the_end_is_a_failure_as_kube_scheduler_has_it(
    served_cluster: tuple[str, ApiServer],
) -> None:
    url, _server = served_cluster
    code, said = _run_until(
        "Handlers synced", [f"--master={url}", "--secure-port=0", "--leader-elect=false", "-v=3"], signal.SIGINT
    )
    assert code == ExitCode.FAILURE
    assert '"command failed" err="finished without leader elect"' in said
    assert "Traceback" not in said


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_endpoints_are_served_first_and_closed_first(served_cluster: tuple[str, ApiServer], tmp_path: Path) -> None:
    url, _server = served_cluster
    port = _free_port()
    flags = [f"--master={url}", f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}"]
    code, said = _run_until("Serving securely on", flags, signal.SIGTERM)
    assert code == ExitCode.OK, said
    steps = [
        f"Generated self-signed cert ({tmp_path}/kube-scheduler.crt, {tmp_path}/kube-scheduler.key)",
        f"Serving securely on 127.0.0.1:{port}",
        f"Stopped listening on 127.0.0.1:{port}",
        "[graceful-termination] secure server has stopped listening",
        "[graceful-termination] secure server is exiting",
    ]
    found = [said.find(step) for step in steps]
    assert -1 not in found, said
    assert found == sorted(found)
    assert "Traceback" not in said
    assert (tmp_path / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600


def test_a_process_that_serves_reloads_its_configuration(
    served_cluster: tuple[str, ApiServer], config: Callable[[str], str], tmp_path: Path
) -> None:
    url, _server = served_cluster
    serving = [f"--secure-port={_free_port()}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}"]
    steps = [("Serving securely on", (signal.SIGHUP,)), ("onfiguration", (signal.SIGTERM,))]
    code, said = _run_through(steps, [config(""), f"--master={url}", *serving])
    assert code == ExitCode.OK, said
    assert '"Reloaded configuration"' in said
    assert "not reloaded" not in said


def test_a_port_that_is_taken_ends_the_start(capsys: Capture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main([MASTER, f"--secure-port={port}", "--bind-address=127.0.0.1"]) == ExitCode.FAILURE
    where = f"127.0.0.1:{port}"
    assert command_failed(capsys) == (
        f"failed to create listener: failed to listen on {where}: listen tcp {where}: bind: address already in use"
    )


def test_a_certificate_that_cannot_be_used_ends_the_start(capsys: Capture, tmp_path: Path) -> None:
    for name in ("crt", "key"):
        (tmp_path / name).write_text("junk")
    files = [f"--tls-cert-file={tmp_path}/crt", f"--tls-private-key-file={tmp_path}/key"]
    assert main([MASTER, f"--secure-port={_free_port()}", "--bind-address=127.0.0.1", *files]) == ExitCode.FAILURE
    assert "failed to find any PEM data in certificate input" in command_failed(capsys)
