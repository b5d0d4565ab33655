"""How many feasible nodes are enough: ``percentageOfNodesToScore``, and the share that is taken where it is 0."""

from typing import Final

MIN_FEASIBLE_NODES_TO_FIND: Final = 100
"""So many feasible nodes are searched for at least; in smaller clusters all nodes are evaluated."""
MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND: Final = 5
"""The smallest share of feasible nodes that is searched for where none is configured."""


def num_feasible_nodes_to_find(count: int, percentage: int) -> int:
    """How many feasible nodes are enough in a cluster of *count* nodes.

    Source: ``numFeasibleNodesToFind`` of kube-scheduler; with a *percentage* of 0 the share falls with *count*.
    """
    if count < MIN_FEASIBLE_NODES_TO_FIND:
        return count
    percentage = percentage or max(MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND, 50 - count // 125)
    return max(MIN_FEASIBLE_NODES_TO_FIND, count * percentage // 100)
