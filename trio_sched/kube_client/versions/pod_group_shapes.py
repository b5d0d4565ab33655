"""``scheduling.k8s.io/v1beta1`` and ``v1alpha3``, which are alike, in the shape of ``v1alpha2`` and back.

========================  =================================  ====================================================
                          v1alpha2                           v1alpha3, v1beta1
========================  =================================  ====================================================
the template              ``podGroupTemplateRef.workload``   ``workloadRef``
disruption mode           ``Pod``, ``PodGroup``              ``{"single": {}}``, ``{"all": {}}``
condition                 ``PodGroupScheduled``              ``PodGroupInitiallyScheduled``
========================  =================================  ====================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.kube_client.versions.device_shapes import changed

_MAX_LEVELS: Final = 4
"""Levels of templates that a server takes."""
_SCHEDULED: Final = "PodGroupScheduled"
_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
_MODES: Final[Mapping[str, str]] = {"single": "Pod", "all": "PodGroup"}


def group_from_v1beta1(group: Json) -> Json:
    """A PodGroup."""
    return _with_condition(changed(group, ("spec",), _spec_from_v1beta1), _INITIALLY_SCHEDULED, _SCHEDULED)


def group_to_v1beta1(group: Json) -> Json:
    """A PodGroup, or a patch of one."""
    return _with_condition(changed(group, ("spec",), _spec_to_v1beta1), _SCHEDULED, _INITIALLY_SCHEDULED)


def workload_from_v1beta1(workload: Json) -> Json:
    """A Workload."""
    return changed(workload, ("spec",), _templates_from_v1beta1)


def _templates_from_v1beta1(part: Json, levels: int = _MAX_LEVELS) -> Json:
    groups, trees = part.get("podGroupTemplates"), part.get("compositePodGroupTemplates")
    if isinstance(groups, list):
        part = {**part, "podGroupTemplates": [_mode_from(one) if isinstance(one, dict) else one for one in groups]}
    if isinstance(trees, list) and levels:
        inner = [_templates_from_v1beta1(one, levels - 1) if isinstance(one, dict) else one for one in trees]
        part = {**part, "compositePodGroupTemplates": inner}
    return part


def _spec_from_v1beta1(spec: Json) -> Json:
    spec = _mode_from(spec)
    reference = spec.get("workloadRef")
    if not isinstance(reference, dict):
        return spec
    named = {
        "workloadName": reference.get("workloadName"),
        "podGroupTemplateName": reference.get("templateName"),
    }
    others = {name: value for name, value in spec.items() if name != "workloadRef"}
    return {**others, "podGroupTemplateRef": {"workload": named}}


def _spec_to_v1beta1(spec: Json) -> Json:
    mode = spec.get("disruptionMode")
    for name, text in _MODES.items():
        if mode == text:
            spec = {**spec, "disruptionMode": {name: {}}}
    reference = spec.get("podGroupTemplateRef")
    workload = reference.get("workload") if isinstance(reference, dict) else None
    if not isinstance(workload, dict):
        return spec
    others = {name: value for name, value in spec.items() if name != "podGroupTemplateRef"}
    named = {
        "workloadName": workload.get("workloadName"),
        "templateName": workload.get("podGroupTemplateName"),
    }
    return {**others, "workloadRef": named}


def _mode_from(spec: Json) -> Json:
    mode = spec.get("disruptionMode")
    if not isinstance(mode, dict):
        return spec
    text = next((text for name, text in _MODES.items() if mode.get(name) is not None), None)
    others = {name: value for name, value in spec.items() if name != "disruptionMode"}
    return others if text is None else {**others, "disruptionMode": text}


def _with_condition(group: Json, old: str, new: str) -> Json:
    """*group* with the condition *old* called *new*."""

    def change(status: Json) -> Json:
        conditions: Any = status.get("conditions")
        if not isinstance(conditions, list):
            return status
        return {**status, "conditions": [_renamed(one, old, new) for one in conditions]}

    return changed(group, ("status",), change)


def _renamed(condition: Any, old: str, new: str) -> Any:
    if not isinstance(condition, dict) or condition.get("type") != old:
        return condition
    return {**condition, "type": new}
