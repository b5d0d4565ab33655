"""Whether labels match a ``metav1.LabelSelector``, or one requirement of it or of a node selector."""

from __future__ import annotations

from collections.abc import Mapping

from trio_sched.documents.json_values import Json


def matches_labels(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether *selector* selects what has *labels*: an empty one everything, a missing one nothing.

    A requirement whose operator is unknown holds: it is refused for that, not for what it does not match.
    """
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(holds(rule, labels) is not False for rule in selector.get("matchExpressions") or ())


def holds(rule: Json, labels: Mapping[str, str]) -> bool | None:
    """Whether *labels* meet the requirement *rule*; None if its operator is none that label selectors have."""
    found, wanted = labels.get(rule.get("key") or ""), rule.get("values") or ()
    match rule.get("operator"):
        case "In":
            return found is not None and found in wanted
        case "NotIn":
            return found is None or found not in wanted
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return None
