"""The allocatable resources of a node, in the integer units of pod requests."""

from trio_sched.objects.amounts.quantity import parse_nano, to_units
from trio_sched.objects.node import Node
from trio_sched.objects.pod_requests import PODS, ResourceAmounts, to_amounts


def node_amounts(node: Node) -> tuple[ResourceAmounts, int]:
    """The allocatable resources of *node*, and the number of pods it takes."""
    nano = {name: parse_nano(quantity) for name, quantity in (node.status.allocatable or {}).items()}
    return to_amounts(nano), to_units(nano.get(PODS, 0))
