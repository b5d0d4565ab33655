"""Pools of nodes: the labels that tell them apart, in reports, `what-if`, `explain` and on the live page."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from trio_sched.objects.node import Node

_POOL_LABELS: Final = (
    "trio-sched.dev/pool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""The labels by which providers tell pools apart, the first that a node has counts."""
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"


def pool_name(node: Node) -> str | None:
    """The name of the pool of *node*, as its provider labels it; None if it has no such label."""
    labels = node.labels
    if labels.keys().isdisjoint(_POOL_LABELS):  # of most clusters' nodes all or none have one
        return None
    return next(labels[key] for key in _POOL_LABELS if key in labels)


def pool_of(node: Node) -> Hashable:
    """What the nodes of a pool have in common: its name, or without one all that a scheduler looks at."""
    name = pool_name(node)
    if name is not None:
        return name
    labels = frozenset([one for one in node.labels.items() if one[0] != HOSTNAME_LABEL and one[1] != node.name])
    return frozenset((node.status.allocatable or {}).items()), labels, node.spec.taints
