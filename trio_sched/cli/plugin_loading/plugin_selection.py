"""Which plugins there are for a command: those that are installed, less what flags exclude, and those in files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from attrs import frozen

from trio_sched.cli.flags.flags import Flags
from trio_sched.engine.registry.plugin_registry import PluginRegistry

if TYPE_CHECKING:
    from trio_sched.cli.plugin_loading.plugin_files import PluginFileError

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_OWN_DISTRIBUTION: Final = "trio-sched"


@frozen(kw_only=True)
class PluginSelection:
    """What the flags ``--plugin``, ``--plugins-dir``, ``--allow-plugins`` and ``--deny-plugins`` say."""

    files: Sequence[str] = ()
    folders: Sequence[str] = ()
    allowed: Sequence[str] = ()
    """Patterns for names and distributions; none allows everything. This project's plugins are always allowed."""
    denied: Sequence[str] = ()
    """Patterns for names and distributions."""

    @property
    def has_files(self) -> bool:
        """Whether there are files, which can change."""
        return bool(self.files or self.folders)

    @classmethod
    def of_flags(cls, flags: Flags) -> PluginSelection:
        """What the flags of the daemon say."""
        return cls(
            files=flags["plugin"],
            folders=flags["plugins-dir"],
            allowed=flags["allow-plugins"],
            denied=flags["deny-plugins"],
        )

    def registry(self) -> PluginRegistry:
        """The plugins.

        Raises:
            PluginFileError: a file cannot be used; the first of all errors about files.
            UnreadableDistribution: what is installed cannot be read.
        """
        registry, errors = self.registry_and_errors()
        if errors:
            raise errors[0]
        return registry

    def registry_and_errors(self) -> tuple[PluginRegistry, list[PluginFileError]]:
        """The plugins that can be used, and what is wrong with files.

        Raises:
            UnreadableDistribution: what is installed cannot be read.
        """
        registry = PluginRegistry.discover()
        if self.allowed or self.denied:
            registry.exclude(self._exclusion)
        if not self.has_files:
            return registry, []
        from trio_sched.cli.plugin_loading.plugin_files import PluginFileError, load_plugin_files  # few starts need it
        from trio_sched.cli.plugin_loading.write_access import warn_of_write_access

        warn_of_write_access(self.files, self.folders)
        found = load_plugin_files(self.files, self.folders)
        for plugin in found.plugins:
            if rule := self._denial(plugin.name, ""):
                found.errors.append(
                    PluginFileError(plugin.path, plugin.line, f"plugin {plugin.name!r} is excluded by {rule}")
                )
                continue
            for replaced in registry.put(plugin.plugin, plugin.source):
                fields = {"plugin": plugin.name, "file": plugin.path, "installed": replaced}
                log.warning("A plugin from a file takes the place of an installed one", extra=fields)
        return registry, found.errors

    def watched_files(self) -> list[str]:
        """The files with plugins, as they are now; those that cannot be listed are left out."""
        from trio_sched.cli.plugin_loading.plugin_files import PluginFileError, plugin_files_in

        watched = list(self.files)
        for folder in self.folders:
            try:
                watched += plugin_files_in(folder, with_helpers=True)
            except PluginFileError:
                continue
        return watched

    def _exclusion(self, name: str, entry_point: EntryPoint) -> str:
        distribution = _normalized(entry_point.dist.name) if entry_point.dist is not None else ""
        if denial := self._denial(name, distribution):
            return denial
        if self.allowed and distribution != _OWN_DISTRIBUTION and not _match(self.allowed, name, distribution):
            return "--allow-plugins, which does not name it"
        return ""

    def _denial(self, name: str, distribution: str) -> str:
        pattern = _match(self.denied, name, distribution)
        return f"--deny-plugins={pattern}" if pattern else ""


def _match(patterns: Sequence[str], name: str, distribution: str) -> str:
    """The first of *patterns* that the name or the distribution matches; empty if none does."""
    return next(
        (
            pattern
            for pattern in patterns
            if fnmatchcase(name, pattern) or (distribution and fnmatchcase(distribution, _normalized(pattern)))
        ),
        "",
    )


def _normalized(distribution: str) -> str:
    """The name of a distribution as pip compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def plugin_options(command: F) -> F:
    """Options of a click command that make a `PluginSelection`: parameters *files_*, see `selection_of`."""
    options = (
        click.option(
            "--plugin",
            "plugin_files",
            multiple=True,
            metavar="FILE.py",
            type=click.Path(),
            help="A file that defines plugins, as if they were installed. May be repeated.",
        ),
        click.option(
            "--plugins-dir",
            "plugin_folders",
            multiple=True,
            metavar="DIR",
            type=click.Path(),
            help="A folder with such files; those beginning with _ are helpers of the others. May be repeated.",
        ),
        click.option(
            "--allow-plugins",
            "allow_plugins",
            default="",
            metavar="PATTERN,...",
            help="Import no plugins of other packages but these names or distributions.",
        ),
        click.option(
            "--deny-plugins",
            "deny_plugins",
            default="",
            metavar="PATTERN,...",
            help="Do not import these names or distributions.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def selection_of(options: dict[str, Any]) -> PluginSelection:
    """What the options of `plugin_options` say."""
    return PluginSelection(
        files=options["plugin_files"],
        folders=options["plugin_folders"],
        allowed=_listed(options["allow_plugins"]),
        denied=_listed(options["deny_plugins"]),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
