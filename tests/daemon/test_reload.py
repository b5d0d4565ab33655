"""The configuration is exchanged while the scheduler runs."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from attrs import evolve
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.config.load import load_configuration
from trio_sched.config.schema import LeaderElection
from trio_sched.daemon.reload import ReloadRefused, ReloadRequests, digest_of, keep_fixed
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.errors import TrioSchedError
from trio_sched.plugin_api import Action, EventRegistration, Handle, Status, Wait, hookimpl, on, unschedulable
from trio_sched.plugin_api import Pod as ApiPod
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LEAST = HEAD + "profiles: [{schedulerName: default-scheduler}]\n"
MOST = HEAD + (
    "profiles: [{schedulerName: default-scheduler, pluginConfig: [{name: NodeResourcesFit, args: "
    "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 100}]}}}]}]\n"
)


class Picky(PluginBase):
    """Refuses every pod."""

    @hookimpl
    def filter_node(self, pod: ApiPod, node: Any, state: Any) -> Status | None:
        return unschedulable("not today")


class Gate(PluginBase):
    """Gates every pod."""

    @hookimpl
    def pre_enqueue(self, pod: ApiPod) -> Status | None:
        return unschedulable("gated")


class Patient(PluginBase):
    """Makes every pod wait; what becomes of it is in its log."""

    @hookimpl
    def permit(self, pod: ApiPod, node_name: str, state: Any) -> Wait:
        return Wait(3600.0)

    @hookimpl
    def unreserve(self, pod: ApiPod, node_name: str, state: Any) -> None:
        self.log.append(("unreserved by", id(self), pod.name))


class SlowToBind(PluginBase):
    """Has a pre_bind that takes ten seconds."""

    @hookimpl
    async def pre_bind(self, pod: ApiPod, node_name: str, state: Any) -> None:
        await trio.sleep(10)


class SlowToPreempt(PluginBase):
    """Looks for other ways for ten seconds, and finds none."""

    @hookimpl
    def filter_node(self, pod: ApiPod, node: Any, state: Any) -> Status | None:
        return unschedulable("not today")

    @hookimpl
    async def post_filter(self, pod: ApiPod, state: Any) -> None:
        await trio.sleep(10)


class Busy(PluginBase):
    """Has a background task."""

    @hookimpl
    async def run(self) -> None:
        self.log.append("begins")
        try:
            await trio.sleep_forever()
        finally:
            self.log.append("ends")


class Hasty(PluginBase):
    """Has a background task that fails at once."""

    @hookimpl
    async def run(self) -> None:
        raise OSError("address in use")


class Broken(Gate):
    """Cannot be instantiated."""

    def __init__(self, args: Any, handle: Handle) -> None:
        raise ValueError("no licence")


class Exiting(Gate):
    """Ends the process in its constructor, as a parser of command lines does."""

    def __init__(self, args: Any, handle: Handle) -> None:
        raise SystemExit("usage: ...")


class ExitingLater(PluginBase):
    """Has a background task that ends the process."""

    @hookimpl
    async def run(self) -> None:
        await trio.sleep(0.5)
        raise SystemExit("no more work")


class Reader(PluginBase):
    """Reads a kind that nobody else reads, and lets pods pass as soon as there is an object of it."""

    KIND: ClassVar[str] = "leases.v1.coordination.k8s.io"

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(self.KIND, Action.ADD)]

    @hookimpl
    def filter_node(self, pod: ApiPod, node: Any, state: Any) -> Status | None:
        return None if list(self.handle.objects(self.KIND)) else unschedulable("no lease")


@pytest.fixture(autouse=True)
def _empty_logs() -> None:
    for plugin in (Patient, Busy):
        plugin.log.clear()


async def test_pods_are_decided_on_by_the_new_profile(autojump_clock: MockClock) -> None:
    nodes = [node("empty", cpu=10, memory="10Gi"), node("used", cpu=10, memory="10Gi")]
    async with virtual_cluster(nodes=nodes, config=LEAST) as cluster:
        await cluster.create(pod("there", cpu=4, node_name="used"))
        await cluster.create(pod("spread", cpu=1))
        await cluster.settle()
        await cluster.reload(MOST)
        await cluster.create(pod("packed", cpu=1))
        await cluster.settle()
        assert cluster.placements() == {
            "default/there": "used",
            "default/spread": "empty",
            "default/packed": "used",
        }


async def test_pods_that_wait_are_tried_again_without_an_event(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Picky]) as cluster:
        await cluster.create(pod("refused"))
        await cluster.settle()
        assert cluster.placements() == {"default/refused": ""}
        await cluster.reload()
        await trio.sleep(15)
        assert cluster.placements() == {"default/refused": "node-1"}


async def test_pods_are_gated_by_the_new_profile_and_freed_by_the_next(autojump_clock: MockClock) -> None:
    async with virtual_cluster(config=LEAST) as cluster:
        await cluster.create(pod("waits"))
        await cluster.settle()
        await cluster.reload(plugins=[Gate])
        await cluster.create(pod("new"))
        await cluster.create(node("n"))
        await trio.sleep(30)
        assert cluster.placements() == {"default/waits": "", "default/new": ""}
        await cluster.reload()
        await trio.sleep(30)
        assert cluster.placements() == {"default/waits": "n", "default/new": "n"}


async def test_pods_that_wait_on_permit_are_unreserved_by_the_plugin_that_reserved_them(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Patient]) as cluster:
        await cluster.create(pod("waits"))
        await trio.sleep(5)
        first = cluster.scheduler.assembly.scheduler.profiles["default-scheduler"].plugins["Patient"]
        await cluster.reload()
        await trio.sleep(15)
        assert cluster.placements() == {"default/waits": "node-1"}
        assert Patient.log == [("unreserved by", id(first), "waits")]


async def test_pods_of_a_new_profile_are_taken_up_and_those_of_one_that_is_gone_are_left_alone(
    autojump_clock: MockClock,
) -> None:
    other = LEAST.replace("default-scheduler", "other")
    async with virtual_cluster(config=LEAST) as cluster:
        await cluster.create(pod("mine"))
        await cluster.create(pod("theirs", scheduler_name="other"))
        await cluster.settle()
        await cluster.reload(other)
        await cluster.create(node("n"))
        await cluster.settle()
        assert cluster.placements() == {"default/mine": "", "default/theirs": "n"}
        await cluster.reload(LEAST)
        await cluster.settle()
        assert cluster.placements() == {"default/mine": "n", "default/theirs": "n"}


@pytest.mark.parametrize("plugin", [None, Patient, SlowToBind, SlowToPreempt])
@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_profile_can_go_while_its_pods_are_on_their_way(
    plugin: type[Any] | None, is_refused: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = [] if plugin is None else [plugin]
    async with virtual_cluster(nodes=1, config=LEAST, plugins=plugins, bind_latency_seconds=10) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(5)
        if is_refused:
            cluster.api.faults.fail_next(1, verb="create", resource="pods/binding", code=500, reason="InternalError")
        await cluster.reload(LEAST.replace("default-scheduler", "other"))
        await trio.sleep(60)
        await cluster.create(pod("theirs", scheduler_name="other"))
        await trio.sleep(60)
        assert cluster.placements()["default/theirs"] == "node-1"
        await cluster.reload(LEAST)
        await trio.sleep(60)
        assert cluster.placements()["default/p"] == "node-1"
        assert "Traceback" not in caplog.text


async def test_what_is_measured_goes_on_after_a_reload(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, config=LEAST) as cluster:
        profiles = cluster.scheduler.assembly.scheduler.measurements.profiles
        await cluster.create(pod("p"))
        await cluster.settle()
        await cluster.reload(MOST)
        await cluster.create(pod("q"))
        await cluster.settle()
        assert profiles["default-scheduler"].bound.count == 2
        await cluster.reload(LEAST.replace("default-scheduler", "other"))
        assert list(profiles) == ["other"]


async def test_what_new_plugins_read_is_watched_before_they_are_asked_and_no_longer_than_they_are(
    autojump_clock: MockClock,
) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"}}
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(lease)
        await cluster.reload(plugins=[Reader])
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.placements() == {"default/p": "node-1"}
        assembly = cluster.scheduler.assembly
        assert Reader.KIND in assembly.scheduler.object_cache.kinds
        await cluster.reload()
        assert Reader.KIND not in assembly.scheduler.object_cache.kinds
        await cluster.create({**lease, "metadata": {"name": "m", "namespace": "default"}})
        await cluster.settle()


async def test_background_tasks_of_the_former_plugins_end_when_those_of_the_new_ones_run(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Busy]) as cluster:
        await cluster.settle()
        await cluster.reload(plugins=[Busy])
        await trio.sleep(1)
        assert Busy.log == ["begins", "begins", "ends"]
        await cluster.reload()
        await trio.sleep(1)
        assert Busy.log == ["begins", "begins", "ends", "ends"]


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Broken, "no licence"),
        (Hasty, "address in use"),
        (Exiting, "SystemExit: usage"),
        (ExitingLater, "SystemExit: no more work"),
    ],
)
async def test_where_a_plugin_fails_to_start_the_former_configuration_stays(
    plugin: type[Any], problem: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Busy]) as cluster:
        with pytest.raises(ReloadRefused, match=problem):
            await cluster.reload(plugins=[plugin])
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.placements() == {"default/p": "node-1"}
        assert Busy.log == ["begins"]
        assert "Configuration not reloaded; the former one stays in force" in caplog.text
        (event,) = [one for one in events(cluster) if one["reason"] == "ConfigurationNotReloaded"]
        assert problem in event["message"]
        assert event["type"] == "Warning"
        counters = cluster.scheduler.assembly.reloads
        assert (counters.succeeded, counters.failed) == (0, 1)


async def test_what_cannot_be_listed_in_time_keeps_the_former_configuration(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        cluster.api.faults.set_latency(1000, verb="list", resource="leases")
        with pytest.raises(ReloadRefused, match="could not be listed within 30 s"):
            await cluster.reload(plugins=[Reader])
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.placements() == {"default/p": "node-1"}


async def test_the_backoff_of_the_new_configuration_counts(autojump_clock: MockClock) -> None:
    async with virtual_cluster(config=LEAST) as cluster:
        await cluster.reload(LEAST + "podInitialBackoffSeconds: 100\npodMaxBackoffSeconds: 100\n")
        await cluster.create(pod("p"))
        await trio.sleep(1)
        await cluster.create(node("n"))
        await trio.sleep(60)
        assert cluster.placements() == {"default/p": ""}
        await trio.sleep(60)
        assert cluster.placements() == {"default/p": "n"}


async def test_a_stream_of_pods_is_neither_lost_nor_bound_twice_by_reloads(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=10, bind_latency_seconds=0.2) as cluster:
        async with trio.open_nursery() as nursery:

            async def reload_again_and_again() -> None:
                for i in range(20):
                    await trio.sleep(0.3)
                    await cluster.reload([LEAST, MOST][i % 2], plugins=[[], [Busy]][i % 2])

            nursery.start_soon(reload_again_and_again)
            for i in range(200):
                await cluster.create(pod(f"p{i}", cpu="100m"))
                await trio.sleep(0.03)
        await cluster.settle()
        assert all(cluster.placements().values())
        binds = [one for one in events(cluster) if one["reason"] == "Scheduled"]
        assert len(binds) == len(cluster.placements()) == 200


def test_fields_that_cannot_change_are_kept_and_named() -> None:
    former = load_configuration(LEAST)
    new = evolve(load_configuration(MOST), leader_election=LeaderElection(resource_name="x"), parallelism=3)
    kept, named = keep_fixed(former, new)
    assert named == ["leaderElection"]
    assert kept == evolve(new, leader_election=former.leader_election)


class _File:
    """A configuration file whose text is a percentage of nodes to score."""

    def __init__(self, path: Path, settings: DaemonSettings) -> None:
        self.path, self.settings = str(path), settings

    def read(self) -> DaemonSettings:
        text = Path(self.path).read_text()
        if not text.isdigit():
            raise TrioSchedError(f"{text!r} is no percentage")
        profiles = tuple(evolve(one, percentage_of_nodes_to_score=int(text)) for one in self.settings.profiles)
        return evolve(self.settings, profiles=profiles)


@asynccontextmanager
async def reloading(path: Path, digest: bytes = b"") -> AsyncIterator[SchedulerProcess]:
    """A scheduler of the configuration file *path*."""
    async with virtual_cluster(nodes=1, scheduler=False) as cluster:
        process = await cluster.start_scheduler(wait=False)
        process._reload = ReloadRequests(_File(path, process.settings), WakeUp(), digest)
        await process.wait_started()
        yield process


def percentage(process: SchedulerProcess) -> int:
    return process.assembly.scheduler.profiles["default-scheduler"].percentage_of_nodes_to_score


async def test_the_file_is_reloaded_when_its_contents_change(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "config.yaml"
    path.write_text("10")
    async with reloading(path) as process:
        await trio.sleep(11)
        assert percentage(process) == 0
        assert process.assembly.reloads.succeeded == 0
        path.write_text("20")
        await trio.sleep(11)
        assert percentage(process) == 20
        path.write_text("many")
        await trio.sleep(11)
        assert percentage(process) == 20
        assert "'many' is no percentage" in process.assembly.reloads.last_problem
        path.unlink()
        await trio.sleep(11)
        other = tmp_path / "other"
        other.write_text("30")
        path.symlink_to(other)  # as a volume of a ConfigMap does
        await trio.sleep(11)
        assert percentage(process) == 30
        assert (process.assembly.reloads.succeeded, process.assembly.reloads.failed) == (2, 1)


async def test_what_has_changed_since_the_start_read_the_file_is_reloaded(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("10")
    digest = digest_of([str(path)])
    path.write_text("20")  # while the caches are filled, or this process follows with delayCacheUntilActive
    async with reloading(path, digest) as process:
        await trio.sleep(6)
        assert percentage(process) == 20


async def test_a_file_that_cannot_be_read_for_a_while_is_reloaded_once_it_can(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("10")
    async with reloading(path) as process:
        await trio.sleep(6)

        def refuse(*_args: Any, **_options: Any) -> bytes:
            raise PermissionError(13, "Permission denied")

        with monkeypatch.context() as patch:  # tests may run as root, for whom everything is readable
            patch.setattr("trio_sched.daemon.reload.read_bytes", refuse)
            path.write_text("20")
            await trio.sleep(11)
            assert percentage(process) == 0
        await trio.sleep(6)
        assert percentage(process) == 20


async def test_a_pipe_is_never_waited_for(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "config.yaml"
    os.mkfifo(path)
    async with reloading(path) as process:
        await trio.sleep(11)
        assert process.assembly.reloads.failed == 0
        process._reload.requested.set()
        await trio.sleep(1)
        assert "it is not a regular file" in process.assembly.reloads.last_problem
        path.unlink()
        path.write_text("20")
        await trio.sleep(6)
        assert percentage(process) == 20


def events(cluster: VirtualCluster) -> list[Any]:
    found = []
    for kind in ("events", "events.events.k8s.io"):
        objects = cluster.api.store.collection(kind).objects.values()
        found += [{**one.fields, "message": one.fields.get("note") or one.fields.get("message")} for one in objects]
    return found
