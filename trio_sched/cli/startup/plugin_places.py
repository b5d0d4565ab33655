"""Where a configuration file names a plugin, for what is wrong with it; at the start also arguments of unknown ones."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from attrs import frozen

from trio_sched.cli.startup.configuration_text import ConfigurationText
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.parse import parse_configuration
from trio_sched.engine.hooks.plugin_errors import PluginArgsError, PluginError
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.go.text import shortened

_SHOWN_PLACES: Final = 3


class PlacedPluginError(TrioSchedError):
    """A `PluginError`, which is the cause, with the file and the path of the field that it is about."""


@frozen
class PluginPlaces:
    """The places of the plugins in one configuration."""

    _file: str
    _source: ConfigurationText
    _gates: FeatureGates

    @contextmanager
    def named_in_errors(self) -> Generator[None, None, None]:
        """While in the block, errors about plugins that the file names say where it does.

        Raises:
            PlacedPluginError: in place of such a `PluginError`.
            PluginError: the file does not name the plugin: it is enabled by default.
        """
        try:
            yield
        except PluginArgsError as error:
            places = list(self._configured(error.plugin))
            if not places:
                raise
            problems = "; ".join(
                f"{places[0]}{'.' if problem.startswith('args') else ': '}{problem}" for problem in error.problems
            )
            raise PlacedPluginError(f"{self._name}: {problems} (plugin {error.plugin!r})") from error
        except PluginError as error:
            places = list(self._enabled(getattr(error, "plugin", "")))
            if not places:
                raise
            more = f" and {len(places) - _SHOWN_PLACES} more" if len(places) > _SHOWN_PLACES else ""
            raise PlacedPluginError(f"{self._name}: {', '.join(places[:_SHOWN_PLACES])}{more}: {error}") from error

    def unknown_arguments(self, registry: PluginRegistry) -> Iterator[str]:
        """What to say of each entry of ``pluginConfig`` whose plugin no profile enables and nobody offers."""
        for index, profile in self._profiles():
            for entry_index, entry in enumerate(profile.get("pluginConfig") or ()):
                name = entry.get("name", "")
                if name in registry or name in KNOWN_PLUGINS or any(self._enabled(name)):
                    continue
                near = nearest_name(name, {*registry.names, *KNOWN_PLUGINS})
                yield (
                    f"{self._name}: profiles[{index}].pluginConfig[{entry_index}].name: no profile enables "
                    f"{shortened(name)!r} and no installed distribution offers it, so that these arguments are not used"
                    + (f"; did you mean {near!r}?" if near else "")
                )

    @property
    def _name(self) -> str:
        return f"{self._file}, converted to v1" if self._source.conversion is not None else self._file

    def _profiles(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Every profile with its index, as the file has it: without defaults, which would shift the indices."""
        given = parse_configuration(self._source.text, self._gates) if self._source.text is not None else {}
        return enumerate(given.get("profiles") or ())

    def _enabled(self, plugin: str) -> Iterator[str]:
        for index, profile in self._profiles():
            for point, plugin_set in (profile.get("plugins") or {}).items():
                for entry_index, entry in enumerate((plugin_set or {}).get("enabled") or ()):
                    if entry.get("name", "") == plugin:
                        yield f"profiles[{index}].plugins.{point}.enabled[{entry_index}].name"

    def _configured(self, plugin: str) -> Iterator[str]:
        for index, profile in self._profiles():
            for entry_index, entry in enumerate(profile.get("pluginConfig") or ()):
                if entry.get("name", "") == plugin:
                    yield f"profiles[{index}].pluginConfig[{entry_index}]"
