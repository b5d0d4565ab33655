"""The profile of a legacy document in today's terms: the plugins of each point and their arguments.

Every kind of legacy document fills a draft; `profile_document.write_profile` writes it in v1.
"""

from typing import Any, Final

from attrs import define, field

from trio_sched.config.known_plugins import KNOWN_PLUGINS

NEWER_PLUGINS: Final = ("SchedulingGates", "DynamicResources", "NodeDeclaredFeatures")
"""Plugins that no document before v1beta3 could enable or disable; they decide about newer fields of pods."""

ESSENTIAL: Final = {"queueSort": "PrioritySort", "postFilter": "DefaultPreemption", "bind": "DefaultBinder"}
"""What was no predicate and no priority, and therefore part of every policy."""

_FOLLOWS: Final = (
    ("NodeAffinity", "preFilter", "filter"),
    ("VolumeBinding", "preFilter", "filter"),
    ("VolumeRestrictions", "preFilter", "filter"),
    ("NodeVolumeLimits", "preFilter", "filter"),
    ("VolumeZone", "preFilter", "filter"),
    ("NodeAffinity", "preScore", "score"),
    ("NodeResourcesFit", "preScore", "score"),
    ("NodeResourcesBalancedAllocation", "preScore", "score"),
    ("VolumeBinding", "preScore", "filter"),
    ("VolumeBinding", "score", "filter"),
    ("DefaultPreemption", "preEnqueue", "postFilter"),
)
"""Points that a plugin acts at today and did not always: it does so where it acts at the other point."""


@define(eq=False)
class ProfileDraft:
    """What one profile is to be; points have the names of the file."""

    scheduler_name: str | None = None
    points: dict[str, dict[str, int]] = field(factory=dict)
    """The plugins of each point in their order, with their weights (0 where there is none)."""
    args: dict[str, dict[str, Any]] = field(factory=dict)
    """The arguments of in-tree plugins, as v1 has them."""
    foreign_args: dict[str, Any] = field(factory=dict)
    """The arguments of other plugins, as they were written."""
    newer_off: dict[str, list[str]] = field(factory=dict)
    """Those of `NEWER_PLUGINS` that the document switches off all the same, by point."""

    def enable(self, point: str, plugin: str, weight: int = 0) -> None:
        """Enable *plugin* at *point*; if it is enabled already, it keeps its place and the greater weight."""
        plugins = self.points.setdefault(point, {})
        plugins[plugin] = max(plugins.get(plugin, 0), weight)

    def runs(self, plugin: str, point: str) -> bool:
        """Whether *plugin* runs at *point*."""
        return plugin in self.points.get(point, {})

    def arguments_of(self, plugin: str) -> dict[str, Any]:
        """The arguments of the in-tree *plugin*, which may be changed."""
        return self.args.setdefault(plugin, {})

    def follow_points(self, without: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Enable plugins at the points that they have gained since, except those in *without* (plugin and point)."""
        for plugin, gained, point in _FOLLOWS:
            if self.runs(plugin, point) and not self.runs(plugin, gained) and (plugin, gained) not in without:
                self._enable_in_default_order(gained, plugin)

    def _enable_in_default_order(self, point: str, plugin: str) -> None:
        plugins = list(self.points.get(point, {}).items())
        index = next((i for i, (name, _) in enumerate(plugins) if _place(name) > _place(plugin)), len(plugins))
        self.points[point] = dict([*plugins[:index], (plugin, 0), *plugins[index:]])

    def sort_points(self) -> None:
        """Put the plugins of every point into the default order, others behind them."""
        for point, plugins in self.points.items():
            self.points[point] = dict(sorted(plugins.items(), key=lambda item: _place(item[0])))


_ORDER: Final = {name: place for place, name in enumerate(KNOWN_PLUGINS)}


def _place(plugin: str) -> int:
    return _ORDER.get(plugin, len(_ORDER))


def gained_points() -> frozenset[tuple[str, str]]:
    """The points (each with its plugin) at which `ProfileDraft.follow_points` enables plugins."""
    return frozenset((plugin, gained) for plugin, gained, _ in _FOLLOWS)
