"""Whether evicting pods of lower priority can make room for what a gang lacks."""

from __future__ import annotations

from collections.abc import Iterable

from trio_sched.plugin_api import NodeColumns, NodeView, Pod, pod_resources


def places(pod: Pod, nodes: NodeColumns, names: Iterable[str], enough: int) -> int:
    """How many pods like *pod* fit on the nodes *names* once all pods of lower priority are gone.

    Counts up to *enough*. Only amounts are looked at: that one of them fits on each node at all is known.
    """
    found = 0
    for name in names:
        position = nodes.position(name)
        if position is not None:
            found += max(1, _places_on(pod, nodes.node(position), int(nodes.allowed_pods[position])))
        if found >= enough:
            break
    return found


def _places_on(pod: Pod, node: NodeView, allowed_pods: int) -> int:
    wanted = [(name, amount) for name, amount in pod_resources(pod).requested.amounts() if amount > 0]
    staying = [other for other in node.pods if other.priority >= pod.priority]
    fits = allowed_pods - len(staying)
    for name, amount in wanted:
        used = sum(pod_resources(other).requested.amount(name) for other in staying)
        fits = min(fits, (node.allocatable(name) - used) // amount)
    return fits
