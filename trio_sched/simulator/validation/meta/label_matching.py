"""Whether labels match a ``metav1.LabelSelector`` whose rules hold."""

from __future__ import annotations

from collections.abc import Mapping

from trio_sched.simulator.raw_objects import Json


def matches_labels(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether *selector* selects what has *labels*; an operator that is unknown selects everything."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for requirement in selector.get("matchExpressions") or ():
        key, values = requirement.get("key") or "", requirement.get("values") or []
        match requirement.get("operator"):
            case "In":
                ok = key in labels and labels[key] in values
            case "NotIn":
                ok = labels.get(key) not in values
            case "Exists":
                ok = key in labels
            case "DoesNotExist":
                ok = key not in labels
            case _:
                ok = True
        if not ok:
            return False
    return True
