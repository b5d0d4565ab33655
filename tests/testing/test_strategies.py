import importlib
import sys
from typing import Literal

import pytest
from attrs import field, frozen
from attrs import validators as v
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_sched.plugin_api import Handle, Pod, hookimpl, pod_resources
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import (
    VirtualCluster,
    make_table,
    node,
    pod,
    run_virtual,
    schedule,
    strategies,
    virtual_cluster,
)
from trio_sched.testing.strategies import Cluster, History, arguments, clusters, histories, pods

REPEATABLE = settings(derandomize=True, deadline=None, database=None, max_examples=60)


@REPEATABLE
@given(clusters(max_nodes=6), pods("new"))
def test_no_decision_ever_overcommits_a_node(cluster: Cluster, new_pod: Pod) -> None:
    outcome = schedule(new_pod, on=cluster.nodes, pods=cluster.running)
    if outcome.node_name is None:
        assert outcome.message
        return
    chosen = next(
        view for view in NodeColumns(make_table(cluster.nodes, cluster.running)) if view.name == outcome.node_name
    )
    wanted = pod_resources(new_pod).requested
    for resource in ("cpu", "memory", "example.com/gpu"):
        if wanted.amount(resource):
            assert chosen.requested(resource) + wanted.amount(resource) <= chosen.allocatable(resource)


@REPEATABLE
@given(clusters(min_nodes=1))
def test_running_pods_are_on_nodes_and_have_names_of_their_own(cluster: Cluster) -> None:
    assert {each.node_name for each in cluster.running} <= {member.name for member in cluster.nodes}
    assert len({each.uid for each in cluster.running}) == len(cluster.running)


@settings(REPEATABLE, max_examples=6)
@given(histories())
def test_a_scheduler_survives_every_history(history: History) -> None:
    async def live() -> None:
        async with virtual_cluster(nodes=history.start.nodes) as cluster:
            for change in history.changes:
                await cluster.apply(change)
            await cluster.settle()
            added = [one.new for one in history.changes if one.old is None]
            gone = {one.old.metadata.name for one in history.changes if one.new is None and one.old is not None}
            wanted = {one.key for one in added if isinstance(one, Pod) and one.name not in gone}
            assert wanted <= set(cluster.placements()) | evicted(cluster)

    run_virtual(live)


def evicted(cluster: VirtualCluster) -> set[str]:
    """The pods that made room for others."""
    return {f"default/{event.involved_object.name}" for event in cluster.events("Preempted")}


@REPEATABLE
@given(st.data())
def test_arguments_are_those_that_validators_accept(data: st.DataObject) -> None:
    made = data.draw(arguments(Arguing))
    assert 0 <= made.weight <= 100
    assert made.strategy.kind in ("Most", "Least")
    schedule(pod("p"), on=[node("n")], plugins=[Arguing], args={"Arguing": made})


@settings(REPEATABLE, max_examples=1)
@given(arguments(type("Plain", (), {})))
def test_a_plugin_without_arguments_gets_none(made: object) -> None:
    assert made is None


@frozen(kw_only=True)
class Strategy:
    kind: Literal["Most", "Least"] = "Most"
    resources: tuple[str, ...] = ()


@frozen(kw_only=True)
class Args:
    weight: int = field(validator=[v.ge(0), v.le(100)])
    strategy: Strategy = Strategy()
    limits: dict[str, int] | None = None
    is_strict: bool = False


class Arguing:
    name = "Arguing"
    Args = Args

    def __init__(self, args: Args, handle: Handle) -> None:
        assert isinstance(args.strategy, Strategy)

    @hookimpl
    def score_node(self) -> int:
        return 1


def test_without_hypothesis_the_module_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=r"pip install trio-sched\[testing\]"):
        importlib.reload(strategies)
