import logging
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins.plugin_trace import BadTraceSelector, TraceSelector, describe_answer
from trio_sched.engine.hooks.measurements import SAMPLE_GAP
from trio_sched.plugin_api import (
    CycleState,
    Input,
    Int64Array,
    NodeColumns,
    Pod,
    PostFilterResult,
    PreFilterResult,
    Verdicts,
    Wait,
    hookimpl,
    unschedulable,
)
from trio_sched.testing import VirtualCluster, make_table, node, pod, virtual_cluster


class Talkative(PluginBase):
    """Has a hook of each kind."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def pre_filter(self, state: CycleState) -> None:
        state.write("Talkative", 1)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(np.array([name != "a" for name in nodes.names], dtype=bool), unschedulable("not a"))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Int64Array:
        return np.full(len(nodes), 7, dtype=np.int64)

    @hookimpl
    def sign(self, pod: Pod) -> str:
        return "alike"

    @hookimpl
    async def post_bind(self, pod: Pod, node_name: str) -> None:
        await trio.sleep(2)


def lines(caplog: pytest.LogCaptureFixture, name: str) -> dict[str, dict[str, Any]]:
    """The calls of Talkative for a pod, by hook."""
    return {
        record.__dict__["hook"]: record.__dict__
        for record in caplog.records
        if record.message == "Plugin called"
        and record.__dict__["plugin"] == "Talkative"
        and record.__dict__["pod"] == f"default/{name}"
    }


async def placed(cluster: VirtualCluster, name: str, **options: Any) -> None:
    await cluster.create(pod(name, **options))
    await trio.sleep(5)
    assert cluster.pod(name).node_name in ("b", "c")


async def test_every_call_for_a_chosen_pod_is_shown(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(
        nodes=[node("a"), node("b"), node("c")], plugins=[Talkative], trace_plugins="default/web-*"
    ) as cluster:
        for name in ("other", "web-1", "web-2"):
            await placed(cluster, name)
        assert lines(caplog, "other") == {}
        for name in ("web-1", "web-2"):  # the second one would come from the cache
            found = lines(caplog, name)
            assert list(found) == ["pre_filter", "filter", "score", "post_bind"]
            assert found["filter"]["answer"] == "2 of 3 pass; 1: UNSCHEDULABLE: not a"
            assert found["score"]["answer"] == "b=7 c=7"
            assert found["pre_filter"]["wrote"] == ["Talkative"]
            assert found["post_bind"]["answer"] == "success"
            assert found["post_bind"]["node"] in ("b", "c")
            assert found["filter"]["seconds"] >= 0


async def test_sign_and_queueing_hints_are_shown_if_they_are_asked_for(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def hooks_seen() -> set[str]:
        return {record.__dict__["hook"] for record in caplog.records if record.message == "Plugin called"}

    for more, seen in (("", set()), (",+sign,+hint", {"sign", "hint"}), (", +hint", {"hint"})):
        caplog.clear()
        async with virtual_cluster(
            nodes=[node("b", cpu=1)], plugins=[Talkative], trace_plugins=f"web{more}"
        ) as cluster:
            await cluster.create(pod("web", cpu=2))
            await trio.sleep(5)
            await cluster.create(node("c", cpu=1))
            await cluster.create(node("d", cpu=4))
            await trio.sleep(5)
            assert cluster.pod("web").node_name == "d"
        assert "filter" in hooks_seen()
        assert hooks_seen() & {"sign", "hint"} == seen


async def test_it_is_switched_while_the_scheduler_runs(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=[node("b")], plugins=[Talkative]) as cluster:
        assembly = cluster.scheduler.assembly
        hooks = assembly.loaded.prepared.hooks
        assembly.hook_times.switch_off()  # it is on for some time after the start
        untouched = [hook.function for hook in hooks]
        trace = assembly.plugin_trace
        trace.choose(TraceSelector.read("app=web"))
        await placed(cluster, "one", labels={"app": "web"})
        await placed(cluster, "two", labels={"app": "db"})
        trace.choose(TraceSelector.read("three"))
        await placed(cluster, "three")
        trace.choose(None)
        assembly.hook_times.switch_off()
        assert [hook.function for hook in hooks] == untouched
        await placed(cluster, "four", labels={"app": "web"})
        assert [bool(lines(caplog, name)) for name in ("one", "two", "three", "four")] == [True, False, True, False]


async def test_every_pod_has_the_same_calls_also_those_whose_attempts_are_sampled(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    count = 3 * SAMPLE_GAP
    async with virtual_cluster(nodes=[node("b")]) as cluster:
        cluster.scheduler.assembly.plugin_trace.choose(TraceSelector.read("*/*"))
        for i in range(count):
            await placed(cluster, f"pod-{i}")
    calls = Counter(record.__dict__["pod"] for record in caplog.records if record.message == "Plugin called")
    assert len(calls) == count
    assert len(set(calls.values())) == 1


async def test_it_goes_on_after_a_reload_and_with_timed_hooks(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=[node("b")], plugins=[Talkative]) as cluster:
        assembly = cluster.scheduler.assembly
        assembly.plugin_trace.choose(TraceSelector.read("*/*"))
        await cluster.reload(plugins=[Talkative])
        assembly.hook_times.switch_on()
        await placed(cluster, "one")
        assert "filter" in lines(caplog, "one")
        assert ("Talkative", "filter") in assembly.hook_times.totals
        assembly.plugin_trace.choose(None)
        assembly.hook_times.switch_off()
        assert all(hook.function.__name__ != "traced" for hook in assembly.loaded.prepared.hooks)


@pytest.mark.parametrize(
    ("text", "key", "labels", "is_chosen"),
    [
        ("shop/cart", "shop/cart", {}, True),
        ("shop/cart", "shop/cart-1", {}, False),
        ("cart*", "shop/cart-1", {}, True),
        ("a/b, shop/*", "shop/x", {}, True),
        ("app=web", "shop/x", {"app": "web"}, True),
        ("app==web", "shop/x", {"app": "web"}, True),
        ("app=web,tier!=back*", "shop/x", {"app": "web", "tier": "backend"}, False),
        ("app=web,tier!=back*", "shop/x", {"app": "web"}, True),
        ("app.kubernetes.io/name=w*", "shop/x", {"app.kubernetes.io/name": "web"}, True),
        ("app=", "shop/x", {}, False),
        ("app=web,+sign", "shop/x", {"app": "web"}, True),
        ("cart-1, +hint", "shop/cart-1", {}, True),
    ],
)
def test_pods_are_chosen_by_name_or_labels(text: str, key: str, labels: dict[str, str], is_chosen: bool) -> None:
    assert TraceSelector.read(text).matches(key, labels) == is_chosen


@pytest.mark.parametrize("text", ["", " , ", "app=web,x", "=x", "+sign"])
def test_what_chooses_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadTraceSelector, match=r"write namespace/name|is neither key=value"):
        TraceSelector.read(text)


def test_a_hook_that_cannot_be_asked_for_is_named() -> None:
    with pytest.raises(BadTraceSelector, match=r"'\+filter' is no hook that can be asked for; write \+hint or \+sign"):
        TraceSelector.read("web,+filter")


NODES = NodeColumns(make_table([node(f"n{number}") for number in range(12)]))


@pytest.mark.parametrize(
    ("hook", "returned", "answer"),
    [
        ("permit", Wait(3.0, "for others"), "wait 3 s: for others"),
        ("permit", None, "nothing"),
        ("sign", None, "not to be cached"),
        ("pre_filter", PreFilterResult(frozenset({"n2", "n1"})), "only 2 nodes: n1 n2"),
        ("pre_filter", PreFilterResult(None), "all nodes"),
        ("score", np.arange(12), "n0=0 n1=1 n2=2 n3=3 n4=4 n5=5 n6=6 n7=7 n8=8 n9=9 and 2 more"),
        ("score_node", 5, "5"),
        ("post_filter", PostFilterResult(nominated_node_name="n1"), "nominated n1"),
        ("post_filter", PostFilterResult(unschedulable("no")), "no node nominated; UNSCHEDULABLE: no"),
    ],
)
def test_answers_are_readable(hook: str, returned: Any, answer: str) -> None:
    assert describe_answer(hook, (pod(), NODES, CycleState()), returned) == answer


def test_an_answer_that_cannot_be_shown_does_no_harm() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise SystemExit(1)

    def explain(_code: int) -> Any:
        raise LookupError("odd")

    assert describe_answer("x", (), Odd()) == "Odd, which cannot be shown: SystemExit: 1"
    verdicts = Verdicts(np.ones(12, dtype=np.int64), explain)
    assert "which cannot be shown: LookupError: odd" in describe_answer("filter", (pod(), NODES), verdicts)


async def test_keys_that_cannot_be_shown_change_no_decision(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise SystemExit(3)

    class Writes(PluginBase):
        @hookimpl
        def pre_filter(self, state: CycleState) -> None:
            state.write(Unprintable(), 1)

    caplog.set_level(logging.INFO)
    async with virtual_cluster(nodes=[node("b")], plugins=[Writes], trace_plugins="*") as cluster:
        await placed(cluster, "one")
    written = [record.__dict__ for record in caplog.records if "wrote" in record.__dict__]
    assert [fields["wrote"] for fields in written if fields["plugin"] == "Writes"] == [["Unprintable"]]
