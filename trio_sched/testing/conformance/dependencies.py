"""Checks ``depends_on``: whether the results about a node change with something that it does not name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node, NodeSpec
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.verdicts import Domain, Input
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing.builders import pod
from trio_sched.testing.conformance.results import Results, ask, only, same
from trio_sched.testing.conformance.subject import Cluster, Subject, Trial


def dependency_problems(subject: Subject) -> Iterator[str]:
    """What is missing in ``depends_on``."""
    trial = subject.fresh()
    for waiting in subject.pods:
        for plugin in trial.profile.depends_on:
            try:
                columns = NodeColumns(trial.show(subject.cluster))
                whole = ask(trial, waiting, columns, columns)
                if whole is not None and not whole.is_random:
                    yield from _dependency_problems(
                        trial, plugin, subject.cluster, waiting, whole, f"pod {waiting.name!r}"
                    )
            except HookFailed:
                continue  # reported as a failure of the hook


def _dependency_problems(
    trial: Trial, plugin: str, cluster: Cluster, waiting: Pod, whole: Results, where: str
) -> Iterator[str]:
    depends_on = trial.profile.depends_on[plugin]
    if None in trial.profile.signature(waiting):
        return
    by_amounts = Input.AMOUNTS in depends_on
    if Input.PODS not in depends_on:
        without = _ask_with_guests(trial, waiting, cluster) if by_amounts else whole
        if not same(without, _ask_with_guests(trial, waiting, cluster, labels={"app": "web"}, host_ports=(8080, 80))):
            more = ", and not with their amounts alone" if by_amounts else ""
            yield f"{where}: results change with the pods on a node{more}: depends_on needs Input.PODS"
    if Input.NODE not in depends_on and not same(whole, _ask_about(trial, waiting, _without_texts(cluster))):
        more = ", and not with its amounts alone" if by_amounts else ""
        yield f"{where}: results change with the node{more}: depends_on needs Input.NODE"
    if not depends_on & {Input.NODE, Input.AMOUNTS} and not same(whole, _ask_about(trial, waiting, _larger(cluster))):
        yield f"{where}: results change with what nodes have allocatable: depends_on needs Input.NODE or Input.AMOUNTS"
    if Input.ALL_NODES not in depends_on and len(cluster.nodes) > 1:
        yield from _problems_with_other_nodes(trial, plugin, cluster, waiting, whole, where)


def _problems_with_other_nodes(
    trial: Trial, plugin: str, cluster: Cluster, waiting: Pod, whole: Results, where: str
) -> Iterator[str]:
    """Whether the results about a node are others once there are only the nodes of its domains, or it alone."""
    keys = sorted(one.key for one in trial.profile.depends_on[plugin] if isinstance(one, Domain))
    for i, about in enumerate(cluster.nodes):
        near = tuple(one for one in cluster.nodes if one is about or any(_share(one, about, key) for key in keys))
        here = _ask_about(trial, waiting, Cluster(near, cluster.running))
        if here is None or same(only(whole, i), only(here, near.index(about))):
            continue
        changes = f"{where}: results about {about.name!r} change with"
        if keys:
            labels = " or ".join(map(repr, keys))
            missing = "Input.ALL_NODES, and sign None if it is their pods"
            yield f"{changes} nodes that have not the same {labels}: depends_on needs {missing}"
        else:
            yield f"{changes} other nodes: depends_on needs Input.ALL_NODES, or the Domain in which they are"
        return


def _share(one: Node, other: Node, key: str) -> bool:
    labels, others = one.metadata.labels or {}, other.metadata.labels or {}
    return key in labels and labels[key] == others.get(key)


def _without_texts(cluster: Cluster) -> Cluster:
    """The nodes with their names and amounts, and nothing else."""
    return Cluster(tuple(map(_with_amounts_only, cluster.nodes)), cluster.running)


def _with_amounts_only(one: Node) -> Node:
    status = replace(one.status, images=None, declared_features=None, conditions=None)
    return replace(one, metadata=ObjectMeta(name=one.name), spec=NodeSpec(), status=status)


def _larger(cluster: Cluster) -> Cluster:
    """The nodes with more CPU and memory than anything asks for."""
    more = {"cpu": "1k", "memory": "1Ti", "pods": 1000}
    nodes = [
        replace(one, status=replace(one.status, allocatable={**(one.status.allocatable or {}), **more}))
        for one in cluster.nodes
    ]
    return Cluster(tuple(nodes), cluster.running)


def _ask_about(trial: Trial, waiting: Pod, cluster: Cluster) -> Results | None:
    columns = NodeColumns(trial.show(cluster))
    return ask(trial, waiting, columns, columns)


def _ask_with_guests(trial: Trial, waiting: Pod, cluster: Cluster, **guests: Any) -> Results | None:
    """The results once every node has one more pod, of the same size and else as *guests* says."""
    table = trial.show(cluster)
    for row in range(table.count):
        guest = pod(f"guest-{row}", cpu="1", memory="1Gi", **guests)
        table.add_pod(row, PodInfo(guest, pod_resources(guest)))
    return ask(trial, waiting, NodeColumns(table), NodeColumns(table))
