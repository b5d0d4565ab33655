"""TopologyPlacementGenerator: a placement for each topology domain that a pod group may be scheduled to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    CompositePodGroup,
    CycleState,
    Handle,
    NodeColumns,
    Placement,
    PodGroup,
    PodGroupInfo,
    Status,
    failure,
    hookimpl,
    quote,
)
from trio_sched.plugin_api.features import Features

NAME = "TopologyPlacementGenerator"


class TopologyPlacementGenerator:
    """Names the domains of the topology key of a group, or the one where pods of it are already."""

    name: ClassVar[str] = NAME

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        has_trees = Features.of(handle.feature_enabled).composite_pod_group
        self.watches = ("PodGroup", "CompositePodGroup") if has_trees else ("PodGroup",)

    @hookimpl
    def placement_generate(
        self, group: PodGroupInfo, nodes: NodeColumns, state: CycleState
    ) -> Iterable[Placement] | Status | None:
        """One placement for each value of the topology key; all nodes if the group has no key."""
        known: PodGroup | CompositePodGroup | None = self._handle.object(group.kind, group.name, group.namespace)
        if known is None:
            return failure(f"{group.kind.lower()}.scheduling.k8s.io {quote(group.name)} not found")
        key = known.topology_key
        if not key:
            return None
        states = [self._handle.pod_group_state(group.namespace, name) for name in group.group_names]
        members = [state for state in states if state is not None]
        if not members:
            return failure(f"pod group state not found for pod group {group.key}")
        wanted: str | None = None
        node_names = {uid: name for state in members for uid, name in state.node_names.items()}
        if node_names:
            found = _domain_of(node_names, key, nodes)
            if isinstance(found, Status):
                return found
            wanted = found
        return _placements(nodes, key, wanted)


def _placements(nodes: NodeColumns, key: str, wanted: str | None) -> list[Placement]:
    ids, values = nodes.label_values(key), nodes.label_vocabulary(key)
    names = np.array(nodes.names, dtype=object)
    placements = []
    for index in np.unique(ids).tolist():
        value = values[index]
        if value is not None and wanted in (None, value):
            placements.append(Placement(value, frozenset(names[ids == index].tolist())))
    return placements


def _domain_of(node_names: Mapping[str, str], key: str, nodes: NodeColumns) -> str | Status:
    """The domain of the pods that are scheduled already, by UID, if it is one."""
    domains: set[str] = set()
    prefix = "cannot determine domain for already scheduled pods: "
    for name in sorted(set(node_names.values())):
        position = nodes.position(name)
        if position is None:
            return failure(f"{prefix}nodeinfo not found for node name {quote(name)}")
        labels = nodes.node(position).labels
        if key not in labels:
            return failure(f"{prefix}no topology domain found for pods on node {name}")
        domains.add(labels[key])
    if len(domains) > 1:
        return failure(f"{prefix}more than 1 domain found for pod group: {', '.join(sorted(domains)[:2])}")
    return domains.pop()
