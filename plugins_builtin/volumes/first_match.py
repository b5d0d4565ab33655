"""For every node the first of many node affinities that it matches, without evaluating each one over all nodes.

Nearly all volumes and storage pools are tied to nodes by one or several values of one label: the host, the zone. Those
affinities are indexed by label value; only the others are evaluated, each over all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from plugins_builtin.volumes.volumes import match_volume_affinity
from trio_sched.plugin_api import BoolArray, Int64Array, NodeColumns, NodeSelector, NodeSelectorTerm, term_problem

_MAX_VALUES = 16
"""The most values of an affinity that is kept: these are limited in number only, and one can have a megabyte."""

AffinityMasks = dict[NodeSelector | None, BoolArray]
"""Affinity → which nodes match it, shape (nodes,)."""


class FirstMatch:
    """Matches *nodes* against *affinities* in order of preference (None: matches all nodes).

    An affinity is identified by its index in *affinities*.

    Args:
        affinities: the affinities, in order.
        nodes: the nodes.
        masks: which *nodes* match an affinity, for those that were evaluated already; what is evaluated is added.
    """

    def __init__(
        self, affinities: Sequence[NodeSelector | None], nodes: NodeColumns, masks: AffinityMasks | None = None
    ) -> None:
        masks = {} if masks is None else masks
        self._nodes = nodes
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._by_mask: list[tuple[BoolArray, list[int]]] = []
        others: dict[NodeSelector | None, list[int]] = {}
        for index, affinity in enumerate(affinities):
            label = None if affinity is None else _single_label(affinity)
            if label is None:
                others.setdefault(affinity, []).append(index)
                continue
            key, values = label
            by_value = self._by_label.setdefault(key, {})
            for value in values:
                by_value.setdefault(value, []).append(index)
        self.no_match = len(affinities)
        """Stands in `first` for nodes that match no affinity."""
        first = np.full(len(nodes), self.no_match, dtype=np.int64)
        for key, by_value in self._by_label.items():
            table = np.full(len(nodes.label_vocabulary(key)), self.no_match, dtype=np.int64)
            for value, indexes in by_value.items():
                value_id = nodes.label_value_id(key, value)
                if value_id is not None:
                    table[value_id] = indexes[0]
            np.minimum(first, table[nodes.label_values(key)], out=first)
        for affinity, indexes in others.items():
            mask = masks.get(affinity)
            if mask is None:
                mask = masks[affinity] = match_volume_affinity(affinity, nodes)
            self._by_mask.append((mask, indexes))
            first[mask] = np.minimum(first[mask], indexes[0])
        self.first: Int64Array = first
        """Shape (nodes,): the index of the first affinity that the node matches, or `no_match`."""

    def all_at(self, position: int) -> Iterable[int]:
        """The indexes of all affinities that the node at *position* matches, in order."""
        found: list[int] = []
        for key, by_value in self._by_label.items():
            value = self._nodes.label_vocabulary(key)[int(self._nodes.label_values(key)[position])]
            if value is not None:
                found.extend(by_value.get(value, ()))
        for mask, indexes in self._by_mask:
            if mask[position]:
                found.extend(indexes)
        return sorted(found)


def _single_label(affinity: NodeSelector) -> tuple[str, tuple[str, ...]] | None:
    """Key and values of an affinity that only requires one label to have one of some values; else None."""
    terms = affinity.node_selector_terms or ()
    if len(terms) != 1 or terms[0].match_fields or len(terms[0].match_expressions or ()) != 1:
        return None
    (requirement,) = terms[0].match_expressions or ()
    is_small = len(requirement.values or ()) <= _MAX_VALUES
    return _kept_label(terms[0]) if is_small else _label_of(terms[0])


def _label_of(term: NodeSelectorTerm) -> tuple[str, tuple[str, ...]] | None:
    (requirement,) = term.match_expressions or ()
    if requirement.operator != "In" or term_problem(term):
        return None
    return requirement.key, tuple(dict.fromkeys(requirement.values or ()))


_kept_label = lru_cache(maxsize=8192)(_label_of)
