"""One more node like those of a pool, with the pods that its DaemonSets would put there."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from msgspec import structs

from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.trial import Trial
from trio_sched.objects.amount_text import amount_text
from trio_sched.objects.node import Node
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.pod import Pod
from trio_sched.objects.storage.storage import CSINode
from trio_sched.plugin_api.clauses import Change, Edit
from trio_sched.snapshot.node_columns import NodeView

POOL_LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""The labels by which providers tell pools apart, the first that a node has counts."""
_HOSTNAME: Final = "kubernetes.io/hostname"
_OF_CONTROLLERS: Final = "node.kubernetes.io/"
_MAX_POOLS: Final = 8
_MAX_SHOWN: Final = 2


def new_nodes(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """Changes that add a node, of the most common pools first."""
    pools: dict[Hashable, list[int]] = {}
    for position, node in enumerate(analysis.nodes):
        pools.setdefault(pool_of(node.node), []).append(position)
    common = sorted(pools.items(), key=lambda one: -len(one[1]))[:_MAX_POOLS]
    helping = 0
    for pool, positions in common:
        model = analysis.nodes.node(positions[0])
        change = _addition(model, pool, trial)
        if trial.would_help(change):
            yield change
            helping += 1
            if helping == _MAX_SHOWN:
                return


def pool_name(node: Node) -> str | None:
    """The name of the pool of *node*, as its provider labels it; None if it has no such label."""
    return next((node.labels[key] for key in POOL_LABELS if key in node.labels), None)


def pool_of(node: Node) -> Hashable:
    """What the nodes of a pool have in common: its name, or without one all that a scheduler looks at."""
    name = pool_name(node)
    if name is not None:
        return name
    amounts, pods = node_amounts(node)
    labels = frozenset((key, value) for key, value in node.labels.items() if key != _HOSTNAME and value != node.name)
    return (amounts, pods, labels, node.spec.taints)


def _addition(model: NodeView, pool: Hashable, trial: Trial) -> Change:
    name = _free_name(model.name, trial)
    amounts, _pods = node_amounts(model.node)
    size = f"{amount_text('cpu', amounts.cpu_milli)} CPU, {amount_text('memory', amounts.memory_bytes)}"
    like = f"pool {pool}" if isinstance(pool, str) else model.name
    edits = [Edit(kind="Node", name=name, apply=lambda _none: _copy(model.node, name))]
    for pod in model.pods:
        if any(one.kind == "DaemonSet" and one.controller for one in pod.metadata.owner_references or ()):
            edits.append(_copied_pod(pod, name))
    known = trial.scheduler.object_cache
    csi_node: CSINode | None = known.get("CSINode", model.name) if "CSINode" in known.kinds else None
    if csi_node is not None:
        edits.append(Edit(kind="CSINode", name=name, apply=lambda _none: _renamed(csi_node, name)))
    return Change(title=f"one more node like {like} ({size})", edits=tuple(edits))


def _free_name(name: str, trial: Trial) -> str:
    number = 1
    while f"{name}-new-{number}" in trial.scheduler.cache.table.row_of:
        number += 1
    return f"{name}-new-{number}"


def _copy(model: Node, name: str) -> Node:
    labels = {key: name if value == model.name else value for key, value in model.labels.items()}
    taints = tuple(one for one in model.spec.taints or () if not one.key.startswith(_OF_CONTROLLERS)) or None
    metadata = structs.replace(model.metadata, name=name, uid=name, labels=labels)
    spec = structs.replace(model.spec, unschedulable=False, taints=taints)
    return structs.replace(model, metadata=metadata, spec=spec)


def _renamed(one: Any, name: str) -> Any:
    return structs.replace(one, metadata=structs.replace(one.metadata, name=name, uid=name))


def _copied_pod(pod: Pod, node_name: str) -> Edit:
    name = f"{pod.name}-of-{node_name}"

    def made(_none: Any) -> Pod:
        spec = structs.replace(pod.spec, node_name=node_name)
        return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, uid=name), spec=spec)

    return Edit(kind="Pod", name=name, namespace=pod.namespace, apply=made)
