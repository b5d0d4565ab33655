"""`trio-sched ui` and `trio-sched top` with a running trio-sched, over connections of their own."""

import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
from real_time_daemon import daemon_settings, node_manifests
from recorded_clusters import record
from rich.console import Console
from served_scheduler import CONFIGURATION, served_scheduler

from contrib.scenarios.manifests import pod
from trio_sched.cli.commands import top, ui
from trio_sched.cli.flags.cluster_options import files_of
from trio_sched.cli.live.live_scheduler import NotShown, connection_of
from trio_sched.cli.live.local_page import LocalPage, SchedulerProxy
from trio_sched.cli.live.running_scheduler import scheduler_connection
from trio_sched.cli.live.top_screen import screen
from trio_sched.cli.main import main
from trio_sched.cli.options.version_options import Versions
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.config.load import load_configuration
from trio_sched.embedded import EmbeddedCaller
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.live_page.reader import LiveReader
from trio_sched.simulation.live_pages.followed_cluster import followed_cluster
from trio_sched.simulator import ApiServer, populate, wall_clock

USER = ConnectionSettings(server="https://api.test", token="t")


@asynccontextmanager
async def running_scheduler(*, allowed: tuple[str, ...] = ("*",)) -> AsyncGenerator[ConnectionSettings, None]:
    """A scheduler with three nodes and a pod that is too large for them."""
    api = ApiServer(now=wall_clock)
    populate(api, [*node_manifests(3), pod("huge", requests={"cpu": "640"})])
    async with served_scheduler(api, allowed=allowed) as port:
        yield scheduler_connection(f"https://127.0.0.1:{port}", USER, ca_file=None, insecure=True)


async def test_the_page_is_there_at_an_address_that_nobody_can_guess() -> None:
    async with running_scheduler() as there, connect(there, qps=-1) as client, trio.open_nursery() as nursery:
        url = await nursery.start(ui.serve_page, LocalPage(SchedulerProxy(client), "secret"), 0)
        base = url.removesuffix("/secret/ui")
        assert url == f"{base}/secret/ui"
        async with httpx.AsyncClient(timeout=20) as browser:
            page = await browser.get(url)
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert "script-src 'self'" in page.headers["content-security-policy"]
            found = (await browser.get(f"{url}/pods", params={"query": "huge"})).json()
            assert [one["queue"] for one in found["pods"]] == ["unschedulable"]
            assert (await browser.get(f"{url}/node?name=x")).json() == {"error": "there is no such node"}
            async with browser.stream("GET", f"{url}/stream") as stream:
                lines = stream.aiter_lines()
                data = [line async for line in _until_data(lines)][-1]
            assert json.loads(data.removeprefix("data: "))["nodes"]["name"] == ["n0", "n1", "n2"]
            for path in ("/ui", "/other/ui", "/secret/metrics", "/secret/uix", "/secret/ui/../metrics"):
                assert (await browser.get(f"{base}{path}")).status_code == 404
            assert (await browser.post(url)).status_code == 405
            rebound = await browser.get(url, headers={"Host": "evil.test"})
            assert rebound.status_code == 404
        nursery.cancel_scope.cancel()


async def _until_data(lines: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
    async for line in lines:
        yield line
        if line.startswith("data: "):
            return


async def test_top_prints_one_screen_where_the_output_is_no_terminal() -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=120, highlight=False, markup=False)
    async with running_scheduler() as there:
        await top._follow(there, partial(top._show, console, None), False)
    text = printed.getvalue()
    assert "scheduler default-scheduler  3 nodes" in text
    assert "pending: unschedulable 1" in text
    assert "Insufficient cpu" in text
    assert "default/huge" in text


async def test_a_simulation_that_is_served_here_is_shown_without_credentials(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    options: dict[str, object] = dict.fromkeys(("from_ca", "config", "kubeconfig", "context")) | {
        "from_insecure": False
    }
    there = connection_of({**options, "scheduler_url": "http://localhost:8001/"})
    assert there == ConnectionSettings(server="http://localhost:8001")
    for elsewhere in ("http://10.0.0.1:8001", "http://localhost.test:8001", "http://localhost:8001/ui"):
        with pytest.raises(TrioSchedError):
            connection_of({**options, "kubeconfig": "", "context": "", "scheduler_url": elsewhere})


async def test_a_cluster_is_shown_without_a_scheduler_of_ours() -> None:
    api = ApiServer(now=wall_clock)
    refused = pod("huge", requests={"cpu": "640"})
    message = "0/3 nodes are available: 3 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    refused["status"] = {"phase": "Pending", "conditions": [condition]}
    populate(api, [*node_manifests(3), refused, pod("new"), pod("there", nodeName="n1")])
    connection = ConnectionSettings(server="http://api.test")
    caller = EmbeddedCaller(api, connection.server)
    printed = io.StringIO()
    console = Console(file=printed, width=120, highlight=False, markup=False)
    settings = daemon_settings(load_configuration(CONFIGURATION))
    cluster = followed_cluster(settings, connection, caller=caller)
    with trio.fail_after(60):
        await top._follow_cluster(cluster, partial(top._show, console, None), False)
        async with followed_cluster(settings, connection, caller=caller) as pages, trio.open_nursery() as nursery:
            url = await nursery.start(ui.serve_page, LocalPage(ui.answer_here(pages), "secret"), 0)
            async with httpx.AsyncClient(timeout=20) as browser:
                explained = (await browser.get(f"{url}/pod?namespace=default&name=huge")).json()
            nursery.cancel_scope.cancel()
    text = printed.getvalue()
    assert "cluster default-scheduler  3 nodes" in text
    assert "pending: active 1  unschedulable 1" in text
    assert "- binds/s  to bind p50 - p99 -" in text
    assert "1     Insufficient cpu" in text
    assert "pods 1/" in text
    assert explained["cause"]["reasons"] == ["InsufficientCPU"]


async def test_without_the_right_it_is_said_which_one_it_is() -> None:
    async with running_scheduler(allowed=("/healthz",)) as there:
        with pytest.raises(
            NotShown, match=r"does not show its page: 40[13] .*the right to get the paths /ui and /ui/\*"
        ):
            await top._follow(there, lambda _reader, _problem: None, False)
        with pytest.raises(NotShown, match="the right to get the paths"):
            await ui._show_scheduler(there, 0, False)


def test_one_screen_has_room_for_all_and_shows_hostile_names_as_text() -> None:
    reader = LiveReader()
    many = range(3000)
    reader.names = {"source": {"kind": "scheduler", "name": "\x1b[31ms"}, "zones": ["[red]z"], "pools": [""]}
    reader.nodes = {
        n: {"zone": 0, "pool": 0, "cpu": 990, "memory": 500, "pods": 3, "pod_limit": 110, "name": f"n{n}"} for n in many
    }
    row = {"namespace": "d", "queue": 2, "priority": 0, "since": 1.0, "attempts": 1, "cause": 0}
    reader.pending = {n: {**row, "name": f"p{n}\x1b]0;x\x07"} for n in many}
    reader.causes = [{"id": 0, "text": "no\nroom", "plugins": ["A"], "count": 3000}]
    reader.time = 100_000.0
    reader.summary = {
        "nodes": 3000,
        "nodes_not_ready": 1,
        "nodes_cordoned": 0,
        "cpu": [1000, 4000],
        "memory": [1 << 30, 4 << 30],
        "pods": [9000, 330_000],
        "queues": [0, 0, 3000, 0, 0, 0, 0],
        "binds_per_second": 1.5,
        "bind_p50": 0.012,
        "bind_p99": None,
        "leader": None,
        "configuration": {"name": "defaults", "error": "bad"},
        "watches": [{"kind": "Pod", "state": "down", "age": 70}],
    }
    printed = io.StringIO()
    Console(file=printed, width=80, highlight=False, emoji=False, markup=False).print(screen(reader, 30))
    text = printed.getvalue()
    assert len(text.splitlines()) <= 30
    assert not {"\x1b", "\x07"} & set(text)
    for shown in ("[red]z", "Pod down for 70s", "not reloaded: bad", "p50 12ms p99 -", "cpu 1/4 (25%)", "27h", "99%"):
        assert shown in text


@pytest.mark.parametrize("command", ["ui", "top"])
def test_an_address_that_is_none_is_an_error(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    config = f"{tmp_path}/config"
    with open(config, "w") as file:
        file.write(
            json.dumps(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": "https://api.test"}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            )
        )
    assert main([command, "--from", "http://x", "--kubeconfig", config]) != ExitCode.OK
    assert "write https://HOST:PORT" in capsys.readouterr().err


async def test_a_recording_is_shown_at_an_address_that_nobody_can_guess(tmp_path: Path) -> None:
    await trio.to_thread.run_sync(partial(record, tmp_path, lambda cluster: cluster.create(pod("there")), nodes=1))
    pages = await trio.to_thread.run_sync(ui._recorded, tmp_path, None, PluginSelection(), tmp_path)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(ui.serve_page, LocalPage(ui.answer_here(pages), "secret"), 0)
        async with httpx.AsyncClient(timeout=20) as browser:
            stream = (await browser.get(f"{url}/stream")).text
            frame = await browser.get(f"{url}/frame", params={"time": pages.frames.end})
            assert "script-src 'self'" in frame.headers["content-security-policy"]
            assert frame.json()["summary"]["pods"][0] == 1
            assert '"timeline":{"begin":' in stream
            assert (await browser.get(url.replace("/secret", ""))).status_code == 404
        nursery.cancel_scope.cancel()


def test_what_is_no_recording_is_an_error_of_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut").mkdir()
    for path in (tmp_path / "file", tmp_path / "cut" / "segment-00000001.trio"):
        path.write_bytes(b"")
    for name, text in {
        "missing": "there is no folder",
        "file": "is no folder",
        "empty": "has no segments of a recording",
        "cut": "has nothing to show",
    }.items():
        assert main(["ui", "--no-browser", "--recording", f"{tmp_path / name}"]) != ExitCode.OK
        said = capsys.readouterr().err
        assert text in said
        assert len(said.splitlines()) <= 2


def test_a_cluster_in_files_is_simulated_and_its_time_can_be_gone_through(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    late = {**pod("late"), "metadata": {"name": "late", "annotations": {"trio-sched.dev/arrive-seconds": "30"}}}
    file.write_text("".join(json.dumps(one) for one in [*node_manifests(2), pod("there"), late]))
    cluster = files_of({"files": (file,), "demo": False, "lenient": False, "strict": False})
    assert cluster is not None
    frames = ui._simulated(cluster, None, PluginSelection(), Versions("1.36", ""), tmp_path).frames
    assert frames.end - frames.begin >= 30
    found = [frames.at(time) for time in (frames.begin + 10, frames.end)]
    first, last = (json.loads(one.snapshot) for one in found if one is not None)
    assert [one["summary"]["pods"][0] for one in (first, last)] == [1, 2]
    assert last["source"]["name"] == f"simulation of {file}"


def test_what_is_simulated_is_of_the_version_that_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    spec = {"schedulingPolicy": {"basic": {}}, "workloadRef": {"workloadName": "work", "templateName": "template"}}
    version, metadata = "scheduling.k8s.io/v1alpha3", {"name": "tree"}
    tree = {"apiVersion": version, "kind": "CompositePodGroup", "metadata": metadata, "spec": spec}
    file.write_text("".join(json.dumps(one) for one in [*node_manifests(1), tree]))
    cluster = files_of({"files": (file,), "demo": False, "lenient": False, "strict": False})
    assert cluster is not None
    with pytest.raises(TrioSchedError, match=r"CompositePodGroup .*1\.37"):
        ui._simulated(cluster, None, PluginSelection(), Versions("1.36", ""), tmp_path)
    frames = ui._simulated(cluster, None, PluginSelection(), Versions("1.37", "1.37"), tmp_path).frames
    assert frames.end >= frames.begin


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--recording", "x", "--from", "https://127.0.0.1:10259"], "--recording says what is shown"),
        (["--demo", "--context", "x"], "-f or --demo says what is shown"),
        (["-f", "x", "--recording", "y"], "-f or --demo and --recording are two things to show"),
        (["-f", "missing"], "missing: cannot be read"),
        (["--kubernetes-version", "1.37"], "are of what -f or --demo simulates"),
    ],
)
def test_only_one_thing_is_shown_at_once(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--no-browser", *arguments]) != ExitCode.OK
    assert problem in capsys.readouterr().err
