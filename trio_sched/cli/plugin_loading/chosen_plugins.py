"""The plugins that a configuration enables: the extension points that they implement, and their arguments."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.engine.registry.plugin_args import plugin_args
from trio_sched.engine.registry.plugin_registry import PluginRegistry, points_of


@frozen(eq=False)
class PointsByPlugin(Mapping[str, frozenset[str]]):
    """The extension points of every plugin: of those that are installed by importing them, else as Kubernetes has them.

    Only what a profile enables is looked up, so nothing else is imported. A name that no distribution offers is not a
    missing key but an `UnknownPlugin`.
    """

    registry: PluginRegistry
    _known: dict[str, frozenset[str]] = field(factory=dict, init=False)

    def __getitem__(self, name: str) -> frozenset[str]:
        points = self._known.get(name)
        if points is None:
            known = KNOWN_PLUGINS.get(name)
            points = points_of(self.registry.load(name)) if known is None or name in self.registry else known
            self._known[name] = points
        return points

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name not in KNOWN_PLUGINS:
            self.registry.load(name)
        return True

    def __iter__(self) -> Iterator[str]:
        return iter({**KNOWN_PLUGINS, **dict.fromkeys(self.registry.names)})

    def __len__(self) -> int:
        return len(set(KNOWN_PLUGINS) | set(self.registry.names))


def check_arguments(profiles: Iterable[ResolvedProfile], registry: PluginRegistry) -> None:
    """Check that every plugin that runs is installed, and its arguments, before anything is connected to.

    Raises:
        UnknownPlugin: of the first plugin that is not installed.
        PluginArgsError: of the first plugin whose arguments do not fit.
    """
    for profile in profiles:
        for name in profile.plugins:
            plugin_args(name, registry.load(name), profile.arguments.get(name))
