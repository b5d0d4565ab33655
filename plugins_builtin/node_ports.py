"""NodePorts: filters out nodes where a host port of the pod is in use."""

from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    SKIP,
    Action,
    BoolArray,
    Change,
    Clause,
    Container,
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
    edit_pod,
    hookimpl,
    host_ports,
    on,
    replace_fields,
    some_names,
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
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each host port that is in use."""
        for (protocol, port), wanted in _addresses_by_port(pod).items():
            fails = np.zeros(len(nodes), dtype=np.bool_)
            for position, addresses in nodes.host_port_users(protocol, port):
                fails[position] = _conflict(wanted, addresses)
            yield Clause(
                reason="HostPortInUse",
                title=f"host port {port}/{protocol}",
                fails=fails,
                cause=partial(_users_of, nodes, protocol, port, fails),
                changes=partial(_without_port, pod, protocol, port),
            )

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


def _users_of(nodes: NodeColumns, protocol: str, port: int, fails: BoolArray, otherwise: BoolArray) -> str:
    where = otherwise & fails if (otherwise & fails).any() else fails
    positions = np.flatnonzero(where).tolist()
    users = []
    for position in positions[:3]:
        node = nodes.node(position)
        users += [
            f"{pod.key} on {node.name}"
            for pod in node.pods
            if any(one.port == port and one.protocol == protocol for one in host_ports(pod))
        ][:1]
    return f"host port {port}/{protocol} is in use on {len(positions)} node(s): by {some_names(users)}"


def _without_port(pod: Pod, protocol: str, port: int, _nodes: BoolArray) -> Iterable[Change]:
    def without(containers: tuple[Container, ...] | None) -> tuple[Container, ...] | None:
        return None if containers is None else tuple(_container_without_port(one, protocol, port) for one in containers)

    def changed(one: Pod) -> Pod:
        spec = replace_fields(
            one.spec, containers=without(one.spec.containers), init_containers=without(one.spec.init_containers)
        )
        return replace_fields(one, spec=spec)

    if not pod.spec.host_network:  # then each port of a container is one of the node
        yield Change(title=f"no host port {port}/{protocol}", edits=(edit_pod(pod, changed),))


def _container_without_port(container: Container, protocol: str, port: int) -> Container:
    ports = tuple(
        replace_fields(one, host_port=0, host_ip="")
        if one.host_port == port and (one.protocol or "TCP") == protocol
        else one
        for one in container.ports or ()
    )
    return replace_fields(container, ports=ports or None)


def _port_was_freed(pod: Pod, old: Pod, new: None) -> Hint:
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    freed = _addresses_by_port(old)
    conflict = any(port in freed and _conflict(wanted, freed[port]) for port, wanted in _addresses_by_port(pod).items())
    return Hint.QUEUE if conflict else Hint.SKIP
