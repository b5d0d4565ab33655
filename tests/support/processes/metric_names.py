"""Which metrics an expression of Prometheus names, and whether they exist."""

import re

from trio_sched.daemon.metrics.families.client_families import CLIENT_FAMILIES
from trio_sched.daemon.metrics.families.component_families import COMPONENT_FAMILIES
from trio_sched.daemon.metrics.families.families import by_name
from trio_sched.daemon.metrics.families.own_families import OWN_FAMILIES
from trio_sched.daemon.metrics.families.scheduler_families import SCHEDULER_FAMILIES

FAMILIES = by_name(CLIENT_FAMILIES, COMPONENT_FAMILIES, OWN_FAMILIES, SCHEDULER_FAMILIES)
_FUNCTIONS = ("histogram_quantile", "label_values")
_TARGET_LABELS = {"le", "instance", "job", "pod", "namespace"}
"""Labels that Prometheus adds, and that of the buckets."""
_GROUPING = r"\b(?:by|on)\s*\(([^)]*)\)"


def check_expression(expression: str) -> None:
    """Fail unless *expression* names metrics that exist, with labels that these have."""
    plain = re.sub(rf'{_GROUPING}|"[^"]*"|\[[^]]*\]', "", expression)
    named = re.findall(r"\b([a-z_]+_[a-z_]+)\s*(?:\{([^}]*)\})?", plain)
    metrics = [(name, labels) for name, labels in named if name not in _FUNCTIONS]
    assert metrics, expression
    known = set(_TARGET_LABELS)
    for name, labels in metrics:
        family = FAMILIES.get(name) or FAMILIES.get(re.sub(r"_(bucket|sum|count)$", "", name))
        assert family is not None, name
        assert family.name == name or family.type.value == "histogram", name
        known |= set(family.labels)
        assert {one.split("=")[0].split("!")[0].strip() for one in labels.split(",") if one.strip()} <= known, name
    grouped = {label.strip() for group in re.findall(_GROUPING, expression) for label in group.split(",")}
    assert grouped <= known, grouped - known
