"""What the predicates of a policy are today: plugins that filter, and their arguments."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy.added_affinity import require_labels
from trio_sched.config.legacy.changes import Changes, listed
from trio_sched.config.legacy.profile_draft import ProfileDraft
from trio_sched.config.wire_types import POINTS
from trio_sched.errors import nearest_name
from trio_sched.go.text import shortened

_GENERAL: Final = ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity")
_TAINTS: Final = ("TaintToleration",)
_LIMITS: Final = ("NodeVolumeLimits",)
_PLUGINS: Final[Mapping[str, tuple[str, ...]]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": _GENERAL,
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": _TAINTS,
    "MaxCSIVolumeCountPred": _LIMITS,
    "MaxEBSVolumeCount": _LIMITS,
    "MaxGCEPDVolumeCount": _LIMITS,
    "MaxAzureDiskVolumeCount": _LIMITS,
    "MaxCinderVolumeCount": _LIMITS,
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
    # Since 1.12 the conditions of a node are taints, and every policy includes the plugin that filters by taints.
    "CheckNodeCondition": _TAINTS,
    "CheckNodeMemoryPressure": _TAINTS,
    "CheckNodeDiskPressure": _TAINTS,
    "CheckNodePIDPressure": _TAINTS,
}
_MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
_DEFAULT: Final = (
    "NoVolumeZoneConflict",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "CheckVolumeBinding",
    "EvenPodsSpread",
)
_LABELS: Final = "CheckNodeLabelPresence"
_SERVICE_AFFINITY: Final = ("CheckServiceAffinity", "ServiceAffinity")
_FILTERING: Final = ("preFilter", "filter", "reserve", "preBind")
"""Where a predicate acts today; not every plugin acts at all of them."""


def apply_predicates(predicates: Sequence[Mapping[str, Any]] | None, draft: ProfileDraft, changes: Changes) -> None:
    """Enable the filter plugins that *predicates* stand for, the default ones if they are None."""
    for name in (*_MANDATORY, *(_DEFAULT if predicates is None else ())):
        _enable(_PLUGINS[name], draft)
    if predicates is None:
        changes.note("predicates", "none given, so the default plugins filter")
        return
    present: list[str] = []
    absent: list[str] = []
    for index, predicate in enumerate(predicates):
        path, name, argument = f"predicates[{index}]", predicate.get("name", ""), predicate.get("argument")
        if argument is not None and len(argument) != 1:
            changes.refuse(f"{path}.argument", "must have exactly one of serviceAffinity and labelsPresence")
        elif name in _PLUGINS:
            _enable(_PLUGINS[name], draft)
            changes.note(path, f"{name} is {listed(_PLUGINS[name])} now")
        elif argument and "labelsPresence" in argument:
            labels = argument["labelsPresence"]
            (present if labels.get("presence") else absent).extend(labels.get("labels") or ())
            changes.note(path, f"{name} is addedAffinity of NodeAffinityArgs now")
        elif name in _SERVICE_AFFINITY or argument:
            why = f"predicate {name!r} is gone, and nothing does what it did; use pod affinity or a topology spread"
            changes.refuse(path, f"{why} constraint in the pods, and leave it out here")
        elif name != _LABELS:
            changes.refuse(path, _unknown(name))
    if present or absent:
        if not draft.runs("NodeAffinity", "filter"):
            changes.note("predicates", "NodeAffinity, which demands labels now, also heeds the node selectors of pods")
        _enable(("NodeAffinity",), draft)
        require_labels(draft, present, absent)


def _enable(plugins: Sequence[str], draft: ProfileDraft) -> None:
    for plugin in plugins:
        for point in _FILTERING:
            if POINTS[point] in KNOWN_PLUGINS[plugin]:
                draft.enable(point, plugin)


def _unknown(name: str) -> str:
    near = nearest_name(name, [*_PLUGINS, _LABELS])
    return f"there is no predicate {shortened(name)!r}" + (f"; did you mean {near!r}?" if near else "; leave it out")
