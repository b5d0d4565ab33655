"""What the API server makes of ``matchLabelKeys`` and ``mismatchLabelKeys``: requirements in the selector beside them.

The scheduler reads the selectors only, of pod affinity in all versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trio_sched.documents.json_values import Json

_MERGED_IN_SPREAD_SINCE: Final = 34
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(fields: Json, minor: int) -> None:
    """Write the values of a new pod's labels into its selectors; parts of its spec are replaced, not changed.

    A requirement that is there already is not written again: so a dump of a cluster can be created again.

    Args:
        fields: of the pod.
        minor: the minor version of Kubernetes that the server has.
    """
    spec, labels = fields["spec"], fields["metadata"].get("labels") or {}
    affinity = spec.get("affinity")
    if affinity:
        spec["affinity"] = {
            which: _merged_terms(value, labels) if which in ("podAffinity", "podAntiAffinity") and value else value
            for which, value in affinity.items()
        }
    constraints = spec.get("topologySpreadConstraints")
    if constraints and minor >= _MERGED_IN_SPREAD_SINCE:
        spec["topologySpreadConstraints"] = [_merged(one, labels) for one in constraints]


def _merged_terms(affinity: Json, labels: Json) -> Json:
    merged = dict(affinity)
    if affinity.get(_REQUIRED):
        merged[_REQUIRED] = [_merged(term, labels) for term in affinity[_REQUIRED]]
    if affinity.get(_PREFERRED):
        merged[_PREFERRED] = [
            {**one, "podAffinityTerm": _merged(one["podAffinityTerm"], labels)} if one.get("podAffinityTerm") else one
            for one in affinity[_PREFERRED]
        ]
    return merged


def _merged(term: Json, labels: Json) -> Json:
    """A term of affinity, or a constraint of topology spreading."""
    selector = term.get("labelSelector")
    if selector is None:  # selects nothing
        return term
    wanted = (
        *_requirements(term, "matchLabelKeys", "In", labels),
        *_requirements(term, "mismatchLabelKeys", "NotIn", labels),
    )
    stated = selector.get("matchExpressions") or []
    added = [one for one in wanted if one not in stated]
    return {**term, "labelSelector": {**selector, "matchExpressions": [*stated, *added]}} if added else term


def _requirements(term: Json, name: str, operator: str, labels: Json) -> Iterable[Json]:
    return [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in term.get(name) or () if key in labels
    ]
