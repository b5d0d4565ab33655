"""What the priorities of a policy are today: plugins that score, their weights, and their arguments."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy.added_affinity import prefer_labels
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.profile_draft import ProfileDraft
from trio_sched.config.legacy.resource_strategy import Strategy, set_scoring_strategy
from trio_sched.config.wire_types import POINTS
from trio_sched.errors import nearest_name
from trio_sched.go.text import shortened

_SPREAD: Final = "PodTopologySpread"
_PLUGINS: Final[Mapping[str, str]] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "EvenPodsSpreadPriority": _SPREAD,
    "SelectorSpreadPriority": _SPREAD,
    "ServiceSpreadingPriority": _SPREAD,
}
_STRATEGIES: Final[Mapping[str, str]] = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
}
_RATIO_PRIORITY: Final = "RequestedToCapacityRatioPriority"
_RATIO_BY_DEFAULT: Final = {"shape": ({"utilization": 0, "score": 10}, {"utilization": 100, "score": 0})}
"""The default shape of that priority: the lower the utilization, the higher the score."""
_BY_SERVICE: Final = frozenset({"SelectorSpreadPriority", "ServiceSpreadingPriority"})
_AVOID_PODS: Final = "NodePreferAvoidPodsPriority"
_CONSTANT: Final = "EqualPriority"
_GONE: Final = frozenset({"ResourceLimitsPriority"})
_DEFAULT: Final[Mapping[str, int]] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
_RATIO: Final = "requestedToCapacityRatioArguments"
_MAX_WEIGHT: Final = (1 << 31) - 1


def apply_priorities(priorities: Sequence[Mapping[str, Any]] | None, draft: ProfileDraft, changes: Changes) -> None:
    """Enable the score plugins that *priorities* stand for, the default ones if they are None."""
    applying = _Applying(draft, changes)
    if priorities is None:
        changes.note("priorities", "none given, so the default plugins score, with the weights of their time")
        for name, weight in _DEFAULT.items():
            applying.apply({"name": name, "weight": weight}, "")
    for index, priority in enumerate(priorities or ()):
        applying.apply(priority, f"priorities[{index}]")
    applying.finish()


@define(eq=False)
class _Applying:
    """The conversion of the priorities of one policy."""

    _draft: ProfileDraft
    _changes: Changes
    _strategies: list[Strategy] = field(factory=list)
    _spreaders: list[str] = field(factory=list)
    _preferences: list[tuple[str, str, bool, int]] = field(factory=list)
    """Path, label, whether it is to be there, weight."""

    def apply(self, priority: Mapping[str, Any], path: str) -> None:
        """Apply one of them; *path* is empty for a default."""
        name, weight, argument = priority.get("name", ""), priority.get("weight", 0), priority.get("argument")
        if not 0 < weight <= _MAX_WEIGHT:
            why = f"priority {name!r} must have a weight from 1 to {_MAX_WEIGHT}, not {weight}"
            self._changes.refuse(f"{path}.weight", why)
        elif argument is not None and len(argument) != 1:
            why = f"must have exactly one of serviceAntiAffinity, labelPreference and {_RATIO}"
            self._changes.refuse(f"{path}.argument", why)
        elif name in _PLUGINS:
            self._enable(_PLUGINS[name], weight)
            if _PLUGINS[name] == _SPREAD:
                self._spreaders.append(name)
            if path:
                how = " with defaultingType System" if name in _BY_SERVICE else ""
                self._changes.note(path, f"{name} is {_PLUGINS[name]}{how} now")
        elif name in _STRATEGIES:
            self._strategies.append(Strategy(path, name, _STRATEGIES[name], weight, {}))
        elif name == _CONSTANT:
            self._changes.note(path, f"{name} gave every node the same, so it is left out")
        elif name == _AVOID_PODS:
            self._changes.note(path, f"{name} is gone; the annotation of nodes that it heeded counts no more")
        elif argument:
            self._apply_custom(name, weight, argument, path)
        elif name == _RATIO_PRIORITY:
            strategy = Strategy(path, name, "RequestedToCapacityRatio", weight, _RATIO_BY_DEFAULT)
            self._strategies.append(strategy)
        elif name in _GONE:
            self._changes.refuse(
                path, f"priority {shortened(name)!r} is gone, and nothing does what it did; leave it out"
            )
        else:
            self._changes.refuse(path, _unknown(name))

    def _apply_custom(self, name: str, weight: int, argument: Mapping[str, Any], path: str) -> None:
        if _RATIO in argument:
            given = argument[_RATIO]
            self._strategies.append(Strategy(path, name, "RequestedToCapacityRatio", weight, given))
        elif "labelPreference" in argument:
            wish = argument["labelPreference"]
            self._preferences.append((path, wish.get("label", ""), wish.get("presence", False), weight))
        else:
            why = f"priority {name!r} is gone; spread by its label with defaultConstraints of PodTopologySpreadArgs"
            self._changes.refuse(path, f"{why}, and leave it out here")

    def finish(self) -> None:
        """Convert the priorities of which several are one plugin today."""
        set_scoring_strategy(self._strategies, self._draft, self._changes)
        if len(self._spreaders) > 1:
            weight = self._draft.points["score"][_SPREAD]
            self._changes.note("priorities", f"{' and '.join(self._spreaders)} are one plugin now, of weight {weight}")
        if self._spreaders and not _BY_SERVICE & set(self._spreaders):
            # The policy does not spread pods without constraints.
            self._draft.arguments_of(_SPREAD)["defaultingType"] = "List"
        self._convert_label_preferences()

    def _convert_label_preferences(self) -> None:
        if not self._preferences:
            return
        weights = {weight for *_, weight in self._preferences}
        if len(weights) > 1:
            path = self._preferences[-1][0]
            self._changes.refuse(f"{path}.weight", "label preferences must all have the same weight")
            return
        (weight,) = weights
        for path, *_ in self._preferences:
            self._changes.note(path, "now a preferred term in addedAffinity of NodeAffinityArgs")
        present = [label for _, label, wanted, _ in self._preferences if wanted]
        absent = [label for _, label, wanted, _ in self._preferences if not wanted]
        prefer_labels(self._draft, present, absent, weight)
        before = self._draft.points.get("score", {}).get("NodeAffinity", 0)
        if before:
            self._changes.note("priorities", "NodeAffinity scores the labels and the wishes of pods together now")
        self._enable("NodeAffinity", before + weight * len(self._preferences))

    def _enable(self, plugin: str, weight: int) -> None:
        self._draft.enable("score", plugin, weight)
        if POINTS["preScore"] in KNOWN_PLUGINS[plugin]:
            self._draft.enable("preScore", plugin)


def _unknown(name: str) -> str:
    near = nearest_name(name, [*_PLUGINS, *_STRATEGIES, _AVOID_PODS, _CONSTANT])
    return f"there is no priority {shortened(name)!r}" + (f"; did you mean {near!r}?" if near else "; leave it out")
