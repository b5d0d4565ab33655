"""NodePorts: filters out nodes where a host port of the pod is in use."""

from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    SKIP,
    Action,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    NodeColumns,
    Pod,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    host_ports,
    on,
    unschedulable,
)

REASON = "node(s) didn't have free ports for the requested pod ports"
_ANY_ADDRESS = "0.0.0.0"


class NodePorts:
    """Filters out nodes where a host port of the pod conflicts with one in use."""

    name: ClassVar[str] = "NodePorts"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.PODS})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Skip without host ports."""
        return None if host_ports(pod) else SKIP

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes with a conflicting port fail; looks at the nodes where the port is in use only."""
        passes = np.ones(len(nodes), dtype=np.bool_)
        for (protocol, port), wanted in _addresses_by_port(pod).items():
            for position, addresses in nodes.host_port_users(protocol, port):
                if _conflict(wanted, addresses):
                    passes[position] = False
        return Verdicts.where(passes, unschedulable(REASON))

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The host ports."""
        return host_ports(pod)

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """A pod with a conflicting port is deleted, or a node is added."""
        return [on(Resource.POD, Action.DELETE, _port_was_freed), on(Resource.NODE, Action.ADD)]


def _addresses_by_port(pod: Pod) -> dict[tuple[str, int], set[str]]:
    """The host ports of *pod*: (protocol, port) → addresses."""
    found: dict[tuple[str, int], set[str]] = {}
    for wanted in host_ports(pod):
        found.setdefault((wanted.protocol, wanted.port), set()).add(wanted.ip)
    return found


def _conflict(wanted: AbstractSet[str], taken: AbstractSet[str]) -> bool:
    """Whether one of the addresses, of the same port, is in both, or all are. Both have at least one."""
    return _ANY_ADDRESS in wanted or _ANY_ADDRESS in taken or not wanted.isdisjoint(taken)


def _port_was_freed(pod: Pod, old: Pod, new: None) -> Hint:
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    freed = _addresses_by_port(old)
    conflict = any(port in freed and _conflict(wanted, freed[port]) for port, wanted in _addresses_by_port(pod).items())
    return Hint.QUEUE if conflict else Hint.SKIP
