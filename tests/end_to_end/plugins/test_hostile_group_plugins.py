"""Hooks about pod groups that answer with anything: the group waits, everything else goes on, and a text says why."""

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import MockClock

from plugins_builtin.preemption.default_preemption import DefaultPreemption
from trio_sched.plugin_api import Placement, PodGroupPostFilterResult, Status, hookimpl
from trio_sched.testing import node, pod, pod_group
from trio_sched.testing.cluster import virtual_cluster

GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
}


def _raise(error: BaseException) -> Any:
    raise error


async def _coroutine() -> None: ...


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


ANSWERS: dict[str, Callable[[], Any]] = {
    "text": lambda: "yes",
    "a number": lambda: 10**30,
    "NaN": lambda: float("nan"),
    "an array": lambda: np.array([np.nan]),
    "a list of numbers": lambda: [1, 2],
    "a list of None": lambda: [None],
    "an endless iterator": lambda: repeat(None),
    "an exception": lambda: _raise(KeyError("team")),
    "an exception without text": lambda: _raise(Unprintable()),
    "an exit": lambda: _raise(SystemExit(3)),
    "a coroutine": lambda: _coroutine(),
    "a hollow status": lambda: Status.__new__(Status),
    "a hollow placement": lambda: [Placement.__new__(Placement)],
    "a placement of a list": lambda: [Placement("x", ["a"])],  # type: ignore[arg-type]
    "a placement of nothing": lambda: [Placement("x", frozenset())],
    "a placement of numbers": lambda: [Placement("x", frozenset([1]))],  # type: ignore[list-item]
    "a count that is none": lambda: PodGroupPostFilterResult((), pdb_violations="many"),  # type: ignore[arg-type]
    "a nameless placement": lambda: [Placement(None, frozenset(["a"]))],  # type: ignore[arg-type]
}


REPLACED = {"placement_generate": "TopologyPlacementGenerator", "pod_group_post_filter": "DefaultPreemption"}
"""Of several plugins with these hooks one is asked."""


def plugin(hook: str, answer: Callable[[], Any]) -> type[Any]:
    """A plugin that answers that at *hook*."""

    def function(self: Any, group: Any) -> Any:
        return answer() if group.name == "unlucky" else None if hook != "placement_score" else 1

    function.__name__ = hook
    members: dict[str, Any] = {"name": REPLACED.get(hook, "Hostile"), "__init__": lambda self, args, handle: None}
    members[hook] = hookimpl(function)
    if hook == "pod_group_post_filter":
        members["Args"] = DefaultPreemption.Args
    return type("Hostile", (), members)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(
    "hook", ["placement_generate", "placement_feasible", "placement_score", "pod_group_post_filter"]
)
async def test_wrong_answers_cost_the_group_and_nothing_else(
    hook: str, answer: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [node("a", cpu=4, labels={"zone": "a"}), node("b", cpu=4, labels={"zone": "b"})]
    version = "1.37" if hook == "placement_feasible" else "1.36"
    plugins = [plugin(hook, ANSWERS[answer])]
    async with virtual_cluster(nodes=nodes, gates=GATES, plugins=plugins, emulated_version=version) as cluster:
        cpu = 3 if hook == "pod_group_post_filter" else 1
        await cluster.create(pod_group("unlucky", min_count=3 if cpu == 3 else 2, topology_key="zone"))
        await cluster.create(pod_group("other", min_count=2))
        for name in ("u1", "u2", "u3"):
            await cluster.create(pod(name, cpu=cpu, group="unlucky"))
        for name in ("o1", "o2"):
            await cluster.create(pod(name, cpu="10m", group="other"))
        await cluster.create(pod("plain", cpu="10m"))
        await trio.sleep(60)
        assert cluster.pod("plain").node_name
        assert cluster.pod("o1").node_name
        assert cluster.pod("o2").node_name
        assert cluster.scheduler.running
        is_fine = answer == "an endless iterator" and hook == "placement_score"
        assert is_fine or f"plugin {REPLACED.get(hook, 'Hostile')} failed at {hook}" in caplog.text


async def test_a_placement_of_unknown_nodes_is_not_taken_for_all_nodes(autojump_clock: MockClock) -> None:
    class Elsewhere:
        name = "TopologyPlacementGenerator"

        def __init__(self, args: Any, handle: Any) -> None: ...

        @hookimpl
        def placement_generate(self, group: Any) -> list[Placement]:
            return [Placement("x", frozenset(["no", "such", "nodes"]))]

    async with virtual_cluster(nodes=2, gates=GATES, plugins=[Elsewhere]) as cluster:
        await cluster.create(pod_group("g", min_count=1))
        await cluster.create(pod("p", group="g"))
        await trio.sleep(60)
        assert not cluster.pod("p").node_name
