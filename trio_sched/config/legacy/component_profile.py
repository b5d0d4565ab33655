"""Turns a profile of a component configuration before v1beta3 into a draft in today's terms."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy.added_affinity import prefer_labels, require_labels
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.component_arguments import OldArguments, old_arguments
from trio_sched.config.legacy.component_plugins import Listed, OldLists, old_lists
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS, ProfileDraft
from trio_sched.config.legacy.resource_strategy import Strategy, set_scoring_strategy
from trio_sched.config.legacy.retired_plugins import (
    AVOID_PODS,
    NODE_LABEL,
    RESOURCE_LIMITS,
    SERVICE_AFFINITY,
    SPREADERS,
    STRATEGIES,
    VOLUME_LIMITS,
)
from trio_sched.config.wire_types import POINTS

_SPREAD: Final = "PodTopologySpread"
_POINTS_OF_RETIRED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(STRATEGIES, ("score",)),
    **dict.fromkeys(SPREADERS, ("preScore", "score")),
    **dict.fromkeys(VOLUME_LIMITS, ("filter",)),
    NODE_LABEL: ("filter", "score"),
    AVOID_PODS: ("score",),
}


def draft_profile(profile: Mapping[str, Any], version: str, changes: Changes, *, path: str) -> ProfileDraft:
    """The draft of *profile*.

    Args:
        profile: its decoded fields.
        version: which legacy version it is written in, before v1beta3.
        changes: where the changes are noted.
        path: of the profile in the document, with a dot behind it unless it is the document itself.

    Raises:
        ConfigError: the arguments of a plugin are not what it takes.
    """
    lists = old_lists(profile.get("plugins", {}), version, changes, f"{path}plugins")
    arguments = old_arguments(profile.get("pluginConfig") or (), version, changes, f"{path}pluginConfig")
    drafting = _Drafting(ProfileDraft(profile.get("schedulerName")), lists, arguments, changes, f"{path}pluginConfig")
    return drafting.draft()


@define(eq=False)
class _Drafting:
    """The conversion of one profile."""

    _draft: ProfileDraft
    _lists: OldLists
    _arguments: OldArguments
    _changes: Changes
    _config_path: str
    _strategies: list[Strategy] = field(factory=list)
    _labels: list[Listed] = field(factory=list)
    _spread_by_service: bool = False

    def draft(self) -> ProfileDraft:
        """The draft, with everything in it."""
        self._draft.args.update(self._arguments.todays)
        self._draft.foreign_args.update(self._arguments.foreign)
        for point, refs in self._lists.points.items():
            for ref in refs:
                self._place(point, ref)
        set_scoring_strategy(self._strategies, self._draft, self._changes)
        self._convert_spreading()
        self._convert_labels()
        self._note_unused_arguments()
        self._draft.follow_points(without=self._lists.named_off)
        for plugin, point in sorted(self._lists.named_off):
            if plugin in NEWER_PLUGINS and not self._draft.runs(plugin, point):
                self._draft.newer_off.setdefault(point, []).append(plugin)
        return self._draft

    def _place(self, point: str, ref: Listed) -> None:
        """Enable the plugin of today that does what *ref* did at *point*."""
        name = ref.plugin
        if name in _POINTS_OF_RETIRED and point not in _POINTS_OF_RETIRED[name]:
            self._changes.refuse(ref.path, f"plugin {name!r} never acted at {point}; leave it out")
        elif name in STRATEGIES:
            given = self._arguments.retired.get(name, {})
            self._strategies.append(Strategy(ref.path, name, STRATEGIES[name], ref.weight, given))
        elif name in VOLUME_LIMITS:
            self._changes.note(ref.path, f"{name} is gone; NodeVolumeLimits counts these volumes now")
            self._draft.enable(point, "NodeVolumeLimits")
        elif name in SPREADERS:
            self._spread_by_service |= point == "score"
            self._draft.enable(point, _SPREAD, ref.weight)
            if ref.path:
                self._changes.note(ref.path, f"{name} is {_SPREAD} with defaultingType System now")
        elif name == NODE_LABEL:
            self._labels.append(ref)
            # Its filter and its scores become NodeAffinity's, which may be on already.
            self._draft.enable(point, "NodeAffinity", self._label_weight(ref.weight) if point == "score" else 0)
        elif name == AVOID_PODS:
            if ref.path:
                self._changes.note(ref.path, f"{name} is gone; the annotation of nodes that it heeded counts no more")
        elif name == SERVICE_AFFINITY:
            why = f"plugin {name!r} is gone, and nothing does what it did; use pod affinity or a topology spread"
            self._changes.refuse(ref.path, f"{why} constraint in the pods, and leave it out here")
        elif name == RESOURCE_LIMITS:
            self._changes.refuse(ref.path, f"plugin {name!r} is gone, and nothing does what it did; leave it out")
        elif name in KNOWN_PLUGINS and POINTS[point] not in KNOWN_PLUGINS[name]:
            if ref.path:
                self._changes.note(ref.path, f"{name} does not act at {point} any more")
        else:
            self._draft.enable(point, name, ref.weight)

    def _label_weight(self, weight: int) -> int:
        return (weight or 1) + self._draft.points.get("score", {}).get("NodeAffinity", 0)

    def _convert_spreading(self) -> None:
        """SelectorSpread spread pods without constraints; if it is not enabled, only the arguments' constraints do."""
        off = any(plugin in SPREADERS for plugin, point in self._lists.named_off if point == "score")
        arguments = self._draft.args.get(_SPREAD, {})
        if off and not self._spread_by_service and not arguments.get("defaultingType"):
            self._draft.arguments_of(_SPREAD)["defaultingType"] = "List"
            what = f"SelectorSpread is {_SPREAD} now; switched off, it is defaultingType List without constraints"
            self._changes.note(self._config_path, what)
        if self._spread_by_service and arguments.get("defaultConstraints"):
            what = f"{_SPREAD} spreads by its defaultConstraints or as SelectorSpread did, not both; the first is kept"
            self._changes.note(self._config_path, what)

    def _convert_labels(self) -> None:
        given = self._arguments.retired.get(NODE_LABEL, {})
        for ref in self._labels:
            self._changes.note(ref.path, "NodeLabel is addedAffinity of NodeAffinityArgs now")
        if any(self._labels_at("filter")):
            require_labels(self._draft, given.get("presentLabels") or (), given.get("absentLabels") or ())
        if any(self._labels_at("score")):
            present = given.get("presentLabelsPreference") or ()
            prefer_labels(self._draft, present, given.get("absentLabelsPreference") or (), 1)

    def _note_unused_arguments(self) -> None:
        running = {ref.plugin for refs in self._lists.points.values() for ref in refs}
        for name in sorted(self._arguments.retired.keys() - running):
            self._changes.note(self._config_path, f"what {name} is told means nothing, because it does not run")

    def _labels_at(self, point: str) -> list[Listed]:
        return [ref for ref in self._lists.points.get(point, ()) if ref.plugin == NODE_LABEL]
