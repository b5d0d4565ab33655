"""Which of the plugins that a configuration enables are installed, and what is done about the others."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import field, frozen

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.engine.plugin_args import plugin_args
from trio_sched.engine.plugin_errors import PluginError, UnknownPlugin
from trio_sched.engine.plugin_registry import PluginRegistry, points_of

_INDISPENSABLE = ("queue_sort", "bind")


class NotYetAvailable(PluginError):
    """The configuration names a plugin of Kubernetes that this version does not have."""

    def __init__(self, plugin: str, profile: str) -> None:
        super().__init__(plugin, profile)
        self.plugin, self.profile = plugin, profile

    def __str__(self) -> str:
        return (
            f"profile {self.profile!r}: plugin {self.plugin!r} is not available in this version of trio-sched yet; "
            "remove it from the configuration (`trio-sched plugins` lists what is there)"
        )


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


@frozen(kw_only=True)
class Chosen:
    """The profiles and plugins that will run."""

    profiles: tuple[ResolvedProfile, ...]
    missing: tuple[str, ...]
    """Default plugins of Kubernetes that this version does not have; they are left out of *profiles*."""


def choose_installed(profiles: Iterable[ResolvedProfile], registry: PluginRegistry) -> Chosen:
    """Leave out the default plugins that are not installed; insist on all others.

    Args:
        profiles: what each profile is to run.
        registry: the plugins that are installed.

    Raises:
        NotYetAvailable: the configuration names a plugin of Kubernetes that this version does not have.
        UnknownPlugin: a required plugin is not installed.
    """
    missing: dict[str, None] = {}
    chosen: list[ResolvedProfile] = []
    for profile in profiles:
        absent = [name for name in profile.plugins if name not in registry]
        for name in absent:
            if name in profile.explicit:
                raise NotYetAvailable(name, profile.name)
            missing[name] = None
        for point in _INDISPENSABLE:
            for ref in profile.points[point]:
                if ref.name in missing:
                    raise UnknownPlugin(ref.name, None)
        chosen.append(profile.limited_to(registry))
    return Chosen(profiles=tuple(chosen), missing=tuple(missing))


def check_arguments(profiles: Iterable[ResolvedProfile], registry: PluginRegistry) -> None:
    """Check the arguments of every plugin that runs, before anything is connected to.

    Raises:
        PluginArgsError: of the first plugin whose arguments do not fit.
    """
    for profile in profiles:
        for name in profile.plugins:
            plugin_args(name, registry.load(name), profile.arguments.get(name))
