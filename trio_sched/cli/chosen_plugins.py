"""Which of the plugins that a configuration enables are installed, and what is done about the others."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import Expanded
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS, default_plugins
from trio_sched.config.schema import MULTI_POINT, Profile
from trio_sched.engine.plugin_errors import UnknownPlugin
from trio_sched.engine.plugin_registry import PluginRegistry, points_of

_INDISPENSABLE = ("queue_sort", "bind")


class NotYetAvailable(ConfigError):
    """The configuration names a plugin of Kubernetes that this version does not have."""


@frozen(eq=False)
class PointsByPlugin(Mapping[str, frozenset[str]]):
    """The extension points of every plugin: of those that are installed by importing them, else as Kubernetes has them.

    Only what a profile enables is looked up, so nothing else is imported. A name that no distribution offers is no
    missing key but raises `UnknownPlugin`, whose text says what to do.
    """

    registry: PluginRegistry

    def __getitem__(self, name: str) -> frozenset[str]:
        known = KNOWN_PLUGINS.get(name)
        return points_of(self.registry.load(name)) if known is None or name in self.registry else known

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

    profiles: tuple[Expanded, ...]
    missing: tuple[str, ...]
    """Default plugins of Kubernetes that this version does not have; they are left out of *profiles*."""


def choose_installed(
    profiles: tuple[Profile, ...], expanded: tuple[Expanded, ...], gates: FeatureGates, registry: PluginRegistry
) -> Chosen:
    """Leave out the default plugins that this version does not have; all others are required.

    Args:
        profiles: as configured, merged with the defaults.
        expanded: the plugins of each point, per profile.
        gates: they decide which plugins are on by default.
        registry: the installed plugins.

    Raises:
        NotYetAvailable: the configuration names a plugin of Kubernetes that this version does not have.
        UnknownPlugin: a required plugin is not installed.
    """
    defaults = {ref.name for ref in default_plugins(gates)}
    missing: dict[str, None] = {}
    for profile, points in zip(profiles, expanded, strict=True):
        named = _named_by_hand(profile, defaults)
        absent = [name for refs in points.values() for name in [ref.name for ref in refs] if name not in registry]
        for name in dict.fromkeys(absent):
            if name in named:
                raise NotYetAvailable.of(
                    f"profile {profile.scheduler_name!r}: plugin {name!r} is not available in this version of "
                    "trio-sched yet; remove it from the configuration (`trio-sched plugins` lists what is there)"
                )
            missing[name] = None
        for point in _INDISPENSABLE:
            for ref in points[point]:
                if ref.name in missing:
                    raise UnknownPlugin(ref.name, None)
    left = tuple(
        {point: tuple(ref for ref in refs if ref.name in registry) for point, refs in points.items()}
        for points in expanded
    )
    return Chosen(profiles=left, missing=tuple(missing))


def _named_by_hand(profile: Profile, defaults: set[str]) -> set[str]:
    """The plugins that *profile* enables besides the defaults."""
    by_hand: set[str] = set()
    for point, plugin_set in profile.plugins.items():
        enabled = {ref.name for ref in plugin_set.enabled}
        by_hand |= enabled - defaults if point == MULTI_POINT else enabled
    return by_hand
