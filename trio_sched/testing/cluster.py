"""A whole cluster in one ``async with``: the real daemon, a simulated API server and kubelets, on trio's clock.

Under a clock that jumps hours pass in an instant. pytest runs such a test on one without any configuration; with the
plugin pytest-trio take its fixture ``autojump_clock``, outside of pytest `run_virtual`::

    async def test_pods_avoid_bad_nodes():
        async with virtual_cluster(nodes=[node("good"), node("bad")], plugins=[AvoidBadNodes]) as cluster:
            await cluster.create(pod("p"))
            await cluster.settle()
            cluster.assert_scheduled("p", on="good")
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache, partial
from os import PathLike
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import trio
from attrs import define, evolve, field

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.documents.json_values import Json
from trio_sched.engine.hooks.attempt_trace import AttemptTracer
from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.simulation.simulated_cluster import run_cluster
from trio_sched.simulator import (
    EPOCH_OF_TESTS,
    ApiServer,
    Controllers,
    ExtenderTransport,
    KubeletPace,
    PretendExtender,
    VolumePace,
    trio_clock,
)
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION
from trio_sched.testing.builders import node
from trio_sched.testing.cluster_assertions import ClusterAssertions
from trio_sched.testing.cluster_objects import ClusterObjects
from trio_sched.testing.cluster_settings import cluster_settings, with_plugin_flags
from trio_sched.testing.custom_resources import custom_resource_definition
from trio_sched.testing.endpoints import Endpoint, PretendEndpoints
from trio_sched.testing.given_plugins import Plugin
from trio_sched.testing.hook_limit import HookLimit
from trio_sched.testing.real_time_limit import RealTimeLimit
from trio_sched.testing.scheduler_process import SchedulerProcess, SeverableTransport

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

REAL_SECONDS = 60.0
"""Many times what any call of a test takes that ends at all."""
QUIET_SECONDS = 75.0
"""Longer than every pause between two attempts at the same thing (backoff, retry, resync)."""

_SETTLING = (
    "pods",
    "nodes",
    "events",
    "persistentvolumeclaims",
    "persistentvolumes",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "podgroups.scheduling.k8s.io",
)
_TURNS_OF_THE_START = 50

_T = TypeVar("_T")
_C = TypeVar("_C")


class NotSettled(TrioSchedError):
    """The cluster did not stop changing in time."""

    def __init__(self, seconds: float, pending: Sequence[str], last_event: str = "") -> None:
        super().__init__(seconds, pending, last_event)
        self.seconds, self.pending, self.last_event = seconds, pending, last_event

    def __str__(self) -> str:
        some = ", ".join(self.pending[:5]) + (", …" if len(self.pending) > 5 else "")
        last = f"; the last event: {self.last_event}" if self.last_event else ""
        return (
            f"things still move after {self.seconds:g} s; {len(self.pending)} pods have no node: {some or 'none'}{last}"
        )


@define(eq=False, kw_only=True)
class VirtualCluster(ClusterObjects, ClusterAssertions):
    """A running cluster: what a test changes in it and reads from it; made by `virtual_cluster`."""

    schedulers: list[SchedulerProcess] = field(factory=list, init=False)
    """Every scheduler that was started, in that order, also those that have ended."""
    _settings: DaemonSettings
    _nursery: trio.Nursery
    _random: Random
    _extenders: Sequence[PretendExtender] = ()
    _tracer: AttemptTracer | None = None
    endpoints: MutableMapping[str, Endpoint] = field(factory=dict)
    """What responds to the requests of plugins, by the beginning of the URL; a test can change it at any time."""
    _changes: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        declared = [f"{resource.plural}.{resource.group}" for resource in self._custom_resources]
        for collection in (*_SETTLING, *declared):
            self.api.store.collection(collection).listen(self._count_change)

    def _count_change(self, _change: object) -> None:
        self._changes += 1

    # --- schedulers -------------------------------------------------------------------------------------------------

    @property
    def scheduler(self) -> SchedulerProcess:
        """The scheduler that was started last."""
        return self.schedulers[-1]

    async def start_scheduler(self, identity: str = "", *, wait: bool = True) -> SchedulerProcess:
        """Start another scheduler; with an election, only one of them schedules.

        Args:
            identity: its name in the lease.
            wait: return once its caches are filled, and background tasks of plugins have done what takes no time, for
                instance fetched data from a pretend endpoint; else at once.

        Raises:
            TrioSchedError: it could not start.
        """
        settings = evolve(self._settings, identity=identity or f"scheduler-{len(self.schedulers) + 1}")
        to_extenders = SeverableTransport(ExtenderTransport(self._extenders))
        process = SchedulerProcess(
            settings,
            self.api,
            to_extenders,
            Random(self._random.random()),
            self.api.now,
            self._tracer,
            PretendEndpoints(self.endpoints, "add it to virtual_cluster(endpoints={url: function})"),
        )
        self.schedulers.append(process)
        self._nursery.start_soon(process.run)
        if wait:
            await process.wait_started()
            for _ in range(_TURNS_OF_THE_START):  # not until all tasks are blocked: a faulty plugin may never be
                await trio.lowlevel.checkpoint()
        return process

    async def stop_scheduler(self, *, drain_seconds: float | None = None) -> None:
        """Stop the scheduler that was started last; see `SchedulerProcess.stop`."""
        await self.scheduler.stop(drain_seconds=drain_seconds)

    async def reload(self, config: str | SchedulerConfig | None = None, *, plugins: Sequence[Plugin] = ()) -> None:
        """Put another configuration in force in all schedulers, as SIGHUP does; see `virtual_cluster` for both.

        Raises:
            PluginError: a plugin is missing or cannot be used.
            ConfigError: the configuration is not valid.
            ReloadRefused: a scheduler keeps its former configuration; the error says why.
        """
        election = self._settings.config.leader_election.leader_elect
        settings = cluster_settings(config, self._settings.gates, plugins, election)
        kept = self._settings  # what flags set is not in the configuration
        settings = evolve(settings, failure_policies=kept.failure_policies, trace_plugins=kept.trace_plugins)
        for process in self.schedulers:
            if process.running:
                await process.reload(settings)

    def plugin(self, name: str, profile: str = "default-scheduler") -> Any:
        """The instance of the plugin *name* that a profile of the scheduler uses, to look at its state.

        Raises:
            LookupError: no scheduler has started, or the profile has no such plugin.
        """
        assembly = self.scheduler.assembly if self.schedulers else None
        if assembly is None:
            raise LookupError("no scheduler has started")
        profiles = assembly.scheduler.profiles
        if profile not in profiles:
            raise LookupError(f"there is no profile {profile!r}; the profiles are {', '.join(profiles)}")
        if name not in profiles[profile].plugins:
            raise LookupError(
                f"profile {profile!r} has no plugin {name!r}; it has {', '.join(profiles[profile].plugins)}"
            )
        return profiles[profile].plugins[name]

    def metric_value(self, plugin: str, name: str, /, **labels: Any) -> float:
        """What *plugin* has counted in its metric *name* under *labels*, in the scheduler that was started last.

        Of a histogram it is the number of observations.

        Raises:
            LookupError: no scheduler has started, or the plugin has made no such metric.
            ValueError: the metric has other labels.
        """
        assembly = self.scheduler.assembly if self.schedulers else None
        if assembly is None:
            raise LookupError("no scheduler has started")
        return assembly.loader.parts.plugin_metrics.value(name, labels, plugin)

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def settle(self, *, quiet_seconds: float | None = None, within_seconds: float = 7200.0) -> None:
        """Wait until pods, nodes, events, volumes, claims, devices and pod groups have stopped changing.

        Pods that wait on permit for longer than *quiet_seconds* may still do so then. Where such waits time out sooner
        and start over, the cluster never settles.

        Args:
            quiet_seconds: how long nothing must change; by default longer than every pause between two attempts, so
                that nothing would change later either.
            within_seconds: the timeout.

        Raises:
            NotSettled: something has changed until the timeout.
            TrioSchedError: a scheduler has failed.
        """
        self._real_time_limit.restart()
        if quiet_seconds is None:
            quiet_seconds = max(QUIET_SECONDS, self._settings.config.pod_max_backoff_seconds + 15.0)
        deadline = trio.current_time() + within_seconds
        while True:
            changes = self._changes
            await trio.sleep(quiet_seconds)
            for process in self.schedulers:
                process.raise_failure()
            if changes == self._changes:
                return
            if trio.current_time() >= deadline:
                pending = [pod.key for pod in self.pods() if not pod.node_name]
                raise NotSettled(within_seconds, pending, self._last_event())

    def _last_event(self) -> str:
        """In words; empty if there is none."""
        found = self.events()
        if not found:
            return ""
        last = max(found, key=lambda event: int(event.metadata.resource_version or 0))
        return f"{last.reason} about {last.involved_object.name}: {last.message}"

    @property
    def _known_resources(self) -> tuple[CustomResource[Any], ...]:
        """Those of the test, and those that the plugins of its schedulers have declared."""
        found = dict.fromkeys(self._custom_resources)
        for process in self.schedulers:
            if process.assembly is not None:
                watched = process.assembly.loaded.wanted_kinds
                found |= dict.fromkeys(kind for kind in watched if isinstance(kind, CustomResource))
        return tuple(found)


@cache
def _is_frozen_by_others() -> bool:
    """Whether objects were frozen before the first virtual cluster of this process: counting them takes long."""
    return gc.get_freeze_count() > 0


@asynccontextmanager
async def virtual_cluster(
    *,
    nodes: int | Iterable[Node | Json] = (),
    config: str | SchedulerConfig | None = None,
    gates: Mapping[str, bool] | None = None,
    emulated_version: str = "",
    plugins: Iterable[Plugin] = (),
    extenders: Iterable[PretendExtender] = (),
    endpoints: Mapping[str, Endpoint] | None = None,
    custom_resources: Iterable[CustomResource[Any]] = (),
    bind_latency_seconds: float = 0.0,
    kubelets: bool | KubeletPace = True,
    volumes: bool | VolumePace = True,
    leader_elect: bool = False,
    scheduler: bool = True,
    begins: datetime = EPOCH_OF_TESTS,
    seed: int = 0,
    kubernetes_version: str = DEFAULT_VERSION,
    real_seconds: float = REAL_SECONDS,
    real_clock: Callable[[], float] = time.perf_counter,
    hook_seconds: float | None = None,
    tracer: Tracer | None = None,
    failure_policies: Mapping[str, str] | None = None,
    trace_plugins: str = "",
    record: str | PathLike[str] | RecordingSettings = "",
) -> AsyncGenerator[VirtualCluster, None]:
    """Run a cluster with a scheduler in it, until the block is left.

    Args:
        nodes: the initial nodes; a number makes so many with default resources, ``node-1`` and so on.
        config: the text of a configuration file, or a configuration; None is kube-scheduler's default.
        gates: feature gates by name.
        emulated_version: the minor version of Kubernetes to schedule as, ``"1.37"``; empty for the default.
        plugins: classes to use besides the installed plugins, or instead of those of the same name, or names of
            installed ones. Those that no profile mentions are enabled in all profiles, at all points that they extend.
            Also instances that the test has made, to look at their state: each serves all profiles and schedulers, and
            keeps the arguments and the handle that it was made with.
        extenders: webhooks that the configuration names by their URLs.
        endpoints: what responds to the requests that plugins make with ``handle.http``, by the beginning of the URL:
            functions that take an `HttpRequest` and return an `HttpResponse`, a dict or text; they may be ``async``.
        custom_resources: are defined in the cluster from the beginning; a test can define others by creating a
            CustomResourceDefinition.
        bind_latency_seconds: how long the API server takes for a binding.
        kubelets: whether kubelets start bound pods, and how fast.
        volumes: whether a volume controller binds and provisions volumes, and how fast.
        leader_elect: whether schedulers use leader election.
        scheduler: start one, and wait until its caches are filled.
        begins: the cluster's time at the beginning, which ``handle.wall_seconds()`` tells, with a time zone; by default
            midnight of 1 January 2026 in UTC.
        seed: of all random choices; equal seeds give equal runs.
        kubernetes_version: of the API server, ``1.31`` to ``1.37``: which versions of which kinds it serves.
        real_seconds: how long the cluster may be busy, by *real_clock*, between two calls of the test; an endless loop
            would never end a test on a clock that jumps.
        real_clock: the clock for that, in seconds.
        hook_seconds: how long one call of a hook may go on without a wait, of real time, before it is interrupted; None
            takes pytest's option ``plugin_hook_seconds``, or 20 s.
        tracer: of OpenTelemetry; makes spans of the attempts that its sampler chooses.
        failure_policies: by plugin, ``{"MyPlugin": "open"}``: what ``--plugin-failure-policy`` sets.
        trace_plugins: the pods for which every call of plugins is logged, as ``--trace-plugins`` chooses them:
            ``"*"`` for all of them.
        record: a folder into which decisions are recorded, as ``--record`` does, for `replayed_cluster`; or all that
            can be said of a recording.

    Raises:
        RealTimeExceeded: the cluster was busy for longer.
        HookNeverReturned: a call of a hook was interrupted.
        PluginError: a plugin is missing or cannot be used.
        ConfigError: the configuration is not valid.
        ValueError: *begins* has no time zone, there is no such version of Kubernetes, a failure policy is none, or
            *trace_plugins* chooses no pods.
    """
    if begins.utcoffset() is None:
        raise ValueError(f"begins={begins!r} has no time zone; add tzinfo=UTC for instance")
    resolved = FeatureGates.emulating(emulated_version, gates or {})
    settings = cluster_settings(config, resolved, list(plugins), leader_elect)
    settings = with_plugin_flags(settings, failure_policies or {}, trace_plugins)
    if record:
        recording = record if isinstance(record, RecordingSettings) else RecordingSettings(folder=Path(record))
        settings = evolve(settings, recording=recording)
    api = ApiServer(now=trio_clock(begins.astimezone(UTC)), seed=seed, kubernetes_version=kubernetes_version)
    if bind_latency_seconds:
        api.faults.set_latency(bind_latency_seconds, verb="bind", resource="pods")
    traced = None
    if tracer is not None:
        from trio_sched.daemon.tracing.attempts import TracedAttempts  # OpenTelemetry is an extra

        traced = TracedAttempts(tracer, api.now)
    beginning = [node(f"node-{n + 1}") for n in range(nodes)] if isinstance(nodes, int) else list(nodes)
    failure: Exception | None = None
    resources = tuple(custom_resources)
    was_frozen = _is_frozen_by_others()
    hook_limit = HookLimit() if hook_seconds is None else HookLimit(hook_seconds)
    with hook_limit:
        async with trio.open_nursery() as nursery:
            limit = RealTimeLimit(real_seconds, real_clock, nursery.cancel_scope)
            trio.lowlevel.add_instrument(limit)
            try:
                cluster = VirtualCluster(
                    api=api,
                    settings=settings,
                    nursery=nursery,
                    random=Random(seed),
                    real_time_limit=limit,
                    extenders=tuple(extenders),
                    tracer=traced,
                    endpoints=dict(endpoints or {}),
                    custom_resources=resources,
                )
                for resource in resources:
                    await cluster.create(custom_resource_definition(resource))
                for one in beginning:
                    await cluster.create(one)
                volume_pace = volumes if isinstance(volumes, VolumePace) else VolumePace() if volumes else None
                pace = kubelets if isinstance(kubelets, KubeletPace) else KubeletPace() if kubelets else None
                run = partial(run_cluster, kubelets=pace, registers_nodes=False)
                await nursery.start(run, api, Controllers(api, volume_pace, keeps_events=True))
                if scheduler:
                    await cluster.start_scheduler()
                yield cluster
                for process in cluster.schedulers:
                    process.raise_failure()
            except (
                Exception
            ) as problem:  # callers do not see the nursery: what the block raised is raised without a group
                failure = problem
            finally:
                limit.remove()
                if not was_frozen:
                    gc.unfreeze()  # others in a test process, Hypothesis for instance, look for referrers
            nursery.cancel_scope.cancel()
    failure = failure or limit.exceeded
    if failure is not None:
        raise failure
