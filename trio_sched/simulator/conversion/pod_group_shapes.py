"""Pod groups and workloads of 1.37 (``v1beta1`` and ``v1alpha3``, which are alike) as they are stored.

That is as in ``v1alpha2``, with further fields of pod groups, and templates of composite pod groups in workloads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.conversion.parts import changed_items, changed_part, without

_MAX_LEVELS: Final = 4
"""Levels of templates that a server takes; what is below is refused, and stays as it is."""
_MODES: Final = {"single": "Pod", "all": "PodGroup"}
_FIELDS: Final = {mode: name for name, mode in _MODES.items()}


def _mode_to_stored(spec: Json) -> Json:
    mode = spec.get("disruptionMode")
    if not isinstance(mode, dict):
        return spec
    chosen = [_MODES.get(name, name) for name, value in mode.items() if value is not None]
    return {**spec, "disruptionMode": chosen[0] if len(chosen) == 1 else ""}


def _mode_from_stored(spec: Json) -> Json:
    field = _FIELDS.get(spec.get("disruptionMode", ""))
    return spec if field is None else {**spec, "disruptionMode": {field: {}}}


def _group_to_stored(spec: Json) -> Json:
    reference: Any = spec.get("workloadRef")
    if not isinstance(reference, dict):
        return _mode_to_stored(spec)
    workload = {
        "workloadName": reference.get("workloadName"),
        "podGroupTemplateName": reference.get("templateName"),
    }
    return _mode_to_stored({**without(spec, "workloadRef"), "podGroupTemplateRef": {"workload": workload}})


def _group_from_stored(spec: Json) -> Json:
    workload = (spec.get("podGroupTemplateRef") or {}).get("workload")
    shown = _mode_from_stored(without(spec, "podGroupTemplateRef"))
    if not workload:
        return shown
    reference = {
        "workloadName": workload.get("workloadName"),
        "templateName": workload.get("podGroupTemplateName"),
    }
    return {**shown, "workloadRef": reference}


def in_all_templates(change: Callable[[Json], Json], levels: int = _MAX_LEVELS) -> Callable[[Json], Json]:
    """A function that applies *change* to the templates of pod groups in a part of a workload, on all *levels*."""

    def reshape(part: Json) -> Json:
        part = changed_items(change, "podGroupTemplates")(part)
        return (
            changed_items(in_all_templates(change, levels - 1), "compositePodGroupTemplates")(part) if levels else part
        )

    return reshape


group_to_stored = changed_part(_group_to_stored, "spec")
group_from_stored = changed_part(_group_from_stored, "spec")
workload_to_stored = changed_part(in_all_templates(_mode_to_stored), "spec")
workload_from_stored = changed_part(in_all_templates(_mode_from_stored), "spec")
