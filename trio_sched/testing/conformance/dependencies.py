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
from trio_sched.plugin_api.verdicts import Input
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
        for i, alone in enumerate(cluster.nodes):
            here = _ask_about(trial, waiting, Cluster((alone,), cluster.running))
            if here is not None and not same(only(whole, i), here):
                yield f"{where}: results about {alone.name!r} change with other nodes: depends_on needs Input.ALL_NODES"
                return


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
