"""For every node the first of many things that can be reached from it, without asking each thing about each node.

Nearly all volumes and storage pools are tied to nodes by one value, or some values, of one label: the host, the zone.
Those are looked up by the node's value; only the others need a mask of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from plugins_builtin._volumes import reachable_from
from trio_sched.plugin_api import BoolArray, Int64Array, NodeColumns, NodeSelector, term_problem


class FirstReachable:
    """Things in order of preference, each with the nodes that reach it (None: all of them)."""

    def __init__(self, affinities: Sequence[NodeSelector | None], nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._by_mask: list[tuple[BoolArray, list[int]]] = []
        others: dict[NodeSelector | None, list[int]] = {}
        for rank, affinity in enumerate(affinities):
            label = None if affinity is None else _one_label(affinity)
            if label is None:
                others.setdefault(affinity, []).append(rank)
                continue
            key, values = label
            by_value = self._by_label.setdefault(key, {})
            for value in values:
                by_value.setdefault(value, []).append(rank)
        self.none = len(affinities)
        """The rank of nodes that reach nothing."""
        best = np.full(len(nodes), self.none, dtype=np.int64)
        for key, by_value in self._by_label.items():
            table = np.full(len(nodes.label_vocabulary(key)), self.none, dtype=np.int64)
            for value, ranks in by_value.items():
                value_id = nodes.label_value_id(key, value)
                if value_id is not None:
                    table[value_id] = ranks[0]
            np.minimum(best, table[nodes.label_values(key)], out=best)
        for affinity, ranks in others.items():
            mask = reachable_from(affinity, nodes)
            self._by_mask.append((mask, ranks))
            best[mask] = np.minimum(best[mask], ranks[0])
        self.best: Int64Array = best
        """Shape (nodes,): the rank of the first thing that the node reaches, `none` if there is nothing."""

    def ranks_at(self, position: int) -> Iterable[int]:
        """The ranks of everything that can be reached from one node, in order."""
        found: list[int] = []
        for key, by_value in self._by_label.items():
            value = self._nodes.label_vocabulary(key)[int(self._nodes.label_values(key)[position])]
            if value is not None:
                found.extend(by_value.get(value, ()))
        for mask, ranks in self._by_mask:
            if mask[position]:
                found.extend(ranks)
        return sorted(found)


@lru_cache(maxsize=8192)
def _one_label(affinity: NodeSelector) -> tuple[str, tuple[str, ...]] | None:
    """Key and values of an affinity that says no more than that a label must have one of them; else None."""
    terms = affinity.node_selector_terms or ()
    if len(terms) != 1 or terms[0].match_fields or len(terms[0].match_expressions or ()) != 1:
        return None
    (requirement,) = terms[0].match_expressions or ()
    if requirement.operator != "In" or term_problem(terms[0]):
        return None
    return requirement.key, tuple(dict.fromkeys(requirement.values or ()))
