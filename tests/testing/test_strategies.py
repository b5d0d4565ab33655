import importlib
import sys

import pytest
from hypothesis import given, settings

from trio_sched.plugin_api import Pod, pod_resources
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import make_table, schedule, strategies
from trio_sched.testing.strategies import Cluster, clusters, pods

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


def test_without_hypothesis_the_module_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match="pip install hypothesis"):
        importlib.reload(strategies)
