"""Attempts become spans: scheduling cycle, binding cycle, hooks."""

from typing import Any

import pytest
import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import StatusCode, Tracer
from plugin_base import PluginBase

from trio_sched.daemon.tracing import attempts
from trio_sched.daemon.tracing.attempts import BINDING_CYCLE, SCHEDULING_CYCLE, TracedAttempts
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.plugin_api import CycleState, NodeView, Pod, Wait, hookimpl
from trio_sched.plugin_api import Status as PluginStatus
from trio_sched.plugin_api.status import failure, unschedulable
from trio_sched.simulator import PretendExtender, leaving, wall_clock
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

Spans = dict[str, ReadableSpan]


class Exported:
    """What was exported so far."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def inside(self, parent: ReadableSpan) -> Spans:
        own = parent.context.span_id
        return {span.name: span for span in self.spans if span.parent is not None and span.parent.span_id == own}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_bound_pod_is_one_trace(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=2, tracer=exported.tracer, bind_latency_seconds=0.5) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        bound = cluster.pod("p")
    (scheduling,), (binding,) = exported.named(SCHEDULING_CYCLE), exported.named(BINDING_CYCLE)
    assert scheduling.parent is None
    assert binding.parent == scheduling.context
    assert len({span.context.trace_id for span in exported.spans}) == 1
    for cycle in (scheduling, binding):
        said = attributes(cycle)
        assert (said[attempts.NAMESPACE], said[attempts.POD], said[attempts.POD_UID]) == ("default", "p", bound.uid)
        assert (said[attempts.SCHEDULER_NAME], said[attempts.ATTEMPT]) == ("default-scheduler", 1)
        assert (said[attempts.RESULT], said[attempts.NODE]) == ("scheduled", bound.node_name)
    assert attributes(scheduling)[attempts.FEASIBLE_NODES] == 2
    hooks = exported.inside(scheduling)
    assert {"NodeResourcesFit pre_filter", "NodeResourcesFit filter", "NodeResourcesFit score"} <= set(hooks)
    fit = attributes(hooks["NodeResourcesFit filter"])
    assert (fit[attempts.PLUGIN], fit[attempts.HOOK], fit[attempts.STATUS]) == ("NodeResourcesFit", "filter", "Success")
    bind = exported.inside(binding)["DefaultBinder bind"]
    assert bind.start_time is not None
    assert bind.end_time is not None
    assert (bind.end_time - bind.start_time) / 1e9 == pytest.approx(0.5)


async def test_spans_lie_within_their_cycles(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=2, tracer=exported.tracer) as cluster:
        for number in range(5):
            await cluster.create(pod(f"p{number}"))
        await cluster.settle()
    assert len(exported.named(BINDING_CYCLE)) == 5
    for cycle in (*exported.named(SCHEDULING_CYCLE), *exported.named(BINDING_CYCLE)):
        for name, span in exported.inside(cycle).items():
            assert (cycle.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0), name
            if name != BINDING_CYCLE:
                assert (span.end_time or 0) <= (cycle.end_time or 0), name


async def test_a_pod_that_fits_nowhere_says_why_and_its_attempts_are_linked(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=1, tracer=exported.tracer) as cluster:
        await cluster.create(pod("p", cpu="1000"))
        await cluster.settle()
        await cluster.create(node("large", cpu="2000"))
        await cluster.settle()
    first, *_others, last = exported.named(SCHEDULING_CYCLE)
    assert attributes(first)[attempts.RESULT] == "unschedulable"
    assert "0/1 nodes are available" in attributes(first)[attempts.MESSAGE]
    assert first.status.status_code == StatusCode.UNSET  # nothing is wrong with the scheduler
    assert "DefaultPreemption post_filter" in exported.inside(first)
    assert attributes(last)[attempts.RESULT] == "scheduled"
    assert attributes(last)[attempts.ATTEMPT] > 1
    assert first.context.trace_id != last.context.trace_id
    assert last.links
    assert first.links == ()


class Picky(PluginBase):
    """Waits, refuses, fails: as the labels of the pod say."""

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> PluginStatus | None:
        return unschedulable("not this one") if node.name == "node-1" else None

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Wait | None:
        return Wait(7.0) if "waits" in pod.labels else None

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> None:
        if "fails" in pod.labels:
            raise ValueError("half of a pair: \udcff")


async def test_hooks_per_node_are_one_span(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=3, plugins=[Picky], tracer=exported.tracer) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
    picky = attributes(exported.inside(exported.named(SCHEDULING_CYCLE)[0])["Picky filter_node"])
    assert (picky[attempts.CALLS], picky[attempts.STATUS]) == (3, "Success")


async def test_failures_and_waits_of_the_binding_cycle_are_shown(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=2, plugins=[Picky], tracer=exported.tracer) as cluster:
        await cluster.create(pod("late", labels={"waits": ""}))
        await cluster.create(pod("broken", labels={"fails": ""}))
        await trio.sleep(8)
    cycles = {attributes(span)[attempts.POD]: span for span in reversed(exported.named(BINDING_CYCLE))}
    late, broken = cycles["late"], cycles["broken"]
    assert attributes(late)[attempts.RESULT] == "unschedulable"
    waited = exported.inside(late)[attempts.WAIT_ON_PERMIT]
    assert ((waited.end_time or 0) - (waited.start_time or 0)) / 1e9 == pytest.approx(7.0)
    assert attributes(broken)[attempts.RESULT] == "error"
    assert broken.status.status_code == StatusCode.ERROR
    assert "half of a pair: ?" in attributes(broken)[attempts.MESSAGE]
    assert exported.inside(broken)["Picky pre_bind"].status.status_code == StatusCode.ERROR
    for cycle in (late, broken):
        assert any(name.endswith(" unreserve") for name in exported.inside(cycle))


async def test_attempts_with_extenders_are_traced(autojump_clock: object) -> None:
    exported = Exported()
    extender = PretendExtender("http://x.test", {"filter": leaving(lambda name: name == "node-2")})
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
extenders: [{urlPrefix: "http://x.test", filterVerb: filter, enableHTTPS: false, nodeCacheCapable: true}]
"""
    async with virtual_cluster(nodes=2, config=config, extenders=[extender], tracer=exported.tracer) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
    (scheduling,) = exported.named(SCHEDULING_CYCLE)
    assert attributes(scheduling)[attempts.NODE] == "node-2"
    assert "NodeResourcesFit filter" in exported.inside(scheduling)
    assert "DefaultBinder bind" in exported.inside(exported.named(BINDING_CYCLE)[0])


async def test_an_attempt_that_is_cancelled_by_the_end_is_shown(autojump_clock: object) -> None:
    exported = Exported()
    async with virtual_cluster(nodes=2, plugins=[Picky], tracer=exported.tracer, kubelets=False) as cluster:
        await cluster.create(pod("late", labels={"waits": ""}))
        await cluster.settle(quiet_seconds=1.0)
        await cluster.stop_scheduler()
    assert attributes(exported.named(BINDING_CYCLE)[0])[attempts.RESULT] == "given up"


async def test_what_the_sampler_drops_costs_no_timing(autojump_clock: object, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = Exported(ALWAYS_OFF)
    async with virtual_cluster(nodes=2, tracer=exported.tracer) as cluster:
        assembly = cluster.scheduler.assembly
        assert assembly is not None
        assembly.scheduler.measurements.sample_gap = lambda: 10**9
        for profile in assembly.scheduler.measurements.profiles.values():
            profile._until_sample = 10**9
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name
        assert assembly.scheduler.measurements.plugin_times.by_hook == {}
    assert exported.spans == ()


async def test_after_its_end_an_attempt_ignores_everything(autojump_clock: object) -> None:
    exported = Exported()
    traced = TracedAttempts(exported.tracer, wall_clock).begin(pod("p"), 1, None)
    assert traced is not None
    traced.failed(unschedulable("no"))
    traced.hook_called(BoundHook("P", "filter", len), "Success", 0.1)
    traced.bound()
    traced.failed(failure("late"))
    traced.given_up()
    assert [attributes(span)[attempts.RESULT] for span in exported.spans] == ["unschedulable"]
