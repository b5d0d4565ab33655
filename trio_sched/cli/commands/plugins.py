"""``trio-sched plugins``: what is installed, where it comes from, and at which points it acts."""

import inspect
import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any, Final

import click
from attrs import field, frozen

from trio_sched.cli.plugin_loading.plugin_schema import plugin_schema
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.terminal import answer_console
from trio_sched.config.wire_types import POINTS
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.registry.plugin_registry import (
    PluginClass,
    PluginRegistry,
    describe_distribution,
    hooks_of,
    points_of,
)
from trio_sched.go.text import printable_lines
from trio_sched.plugin_api.api_version import API_VERSION
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.simulation.tables import PlainTable

_HELP: Final = """\
List the plugins that are installed: their names, distributions and extension points.

Every one is loaded; one that cannot be is listed with its error, and the exit code is 1.

With --output json it is a list of objects with the fields: name; distributions (each with its version; more than one is
an error) or, of a plugin from a file, none; object (module:class); file and line of the class; extensionPoints and
hooks, as the configuration and the API name them; requiresApi (null: any) and api (the version that there is);
watches, writes, dependsOn, onFailure, as the class declares them; args (the JSON Schema of its arguments, null if it
takes none); error, if it cannot be used.
"""


@frozen(kw_only=True)
class Installed:
    """One plugin name and the distributions that offer it."""

    name: str
    distributions: tuple[str, ...]
    """The distributions, with version, that offer it; more than one is an error."""
    object: str = ""
    """``module:class``; empty if that is not known."""
    file: str = ""
    line: int | None = None
    points: tuple[str, ...] = ()
    """Its extension points, as the configuration file writes them."""
    hooks: tuple[str, ...] = ()
    requires_api: str | None = None
    declared: Mapping[str, Any] = field(factory=dict)
    """``watches``, ``writes``, ``dependsOn`` and ``onFailure`` of its class."""
    args: Mapping[str, Any] | None = None
    """The JSON Schema of its arguments; None if it takes none."""
    error: str = ""
    """Why it cannot be used; empty if it can."""


def installed_plugins(registry: PluginRegistry) -> list[Installed]:
    """Load every plugin of *registry* and describe it; one that cannot be loaded does not hide the others."""
    return [_inspect(registry, name) for name in registry.names]


def _inspect(registry: PluginRegistry, name: str) -> Installed:
    entry_points = registry.entry_points(name)
    distributions = tuple(map(_distribution, entry_points))
    object_ = entry_points[0].value if len(entry_points) == 1 else ""
    try:
        plugin = registry.load(name)
        file, line = _place(plugin)
        points = points_of(plugin)
        return Installed(
            name=name,
            distributions=distributions,
            object=object_ or f"{plugin.__module__}:{plugin.__qualname__}",
            file=file,
            line=line,
            points=tuple(written for written, point in POINTS.items() if point in points),
            hooks=tuple(hooks_of(plugin)),
            requires_api=getattr(plugin, "requires_api", None),
            declared=_declared(plugin),
            args=None if getattr(plugin, "Args", None) is None else plugin_schema(name, registry),
        )
    except PluginError as problem:
        return Installed(name=name, distributions=distributions, object=object_, error=str(problem))


def _distribution(entry_point: EntryPoint) -> str:
    return describe_distribution(entry_point.dist) if entry_point.dist else entry_point.value


def _place(plugin: PluginClass) -> tuple[str, int | None]:
    """File and line of the class, as far as they are known."""
    try:
        file = inspect.getsourcefile(plugin) or ""
        return file, inspect.getsourcelines(plugin)[1]
    except (OSError, TypeError, ValueError):
        return "", None


def _declared(plugin: PluginClass) -> dict[str, Any]:
    """What the class declares; what only instances have (properties) counts as not declared."""

    def value(attribute: str) -> Any:
        found = inspect.getattr_static(plugin, attribute, None)
        return None if inspect.isdatadescriptor(found) else found

    writes = {_kind_text(kind): sorted(verbs) for kind, verbs in (value("writes") or {}).items()}
    depends_on = value("depends_on")
    return {
        "watches": sorted(map(_kind_text, value("watches") or ())),
        "writes": dict(sorted(writes.items())),
        "dependsOn": None if depends_on is None else sorted(one.name for one in depends_on),
        "onFailure": value("on_failure") or "closed",
    }


def _kind_text(kind: str | CustomResource[Any]) -> str:
    """A kind as the class names it; custom resources as ``plural.version.group``."""
    return str(kind)


@click.command(help=_HELP, short_help="List the installed plugins.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--schema", "schema_of", metavar="NAME", help="Print the JSON Schema of the arguments of this plugin.")
@plugin_options
def plugins(output: str, schema_of: str | None, **options: Any) -> ExitCode:
    """List the plugins, or print one's schema."""
    registry, unusable = selection_of(options).registry_and_errors()
    if schema_of is not None:
        for error in unusable:
            click.echo(printable_lines(f"{error}"), err=True)
        click.echo(json.dumps(plugin_schema(schema_of, registry), indent=2, default=str))
        return ExitCode.OK
    found = installed_plugins(registry)
    found += [
        Installed(name=error.plugin, distributions=(), file=error.path, line=error.line, error=str(error))
        for error in unusable
    ]
    if output == "json":
        click.echo(json.dumps([_as_json(plugin) for plugin in found], indent=2, default=str))
    else:
        answer_console().print(_as_table(found))
        for plugin in found:
            if plugin.error:
                click.echo(printable_lines(f"{plugin.name}: {plugin.error}"))
    return ExitCode.FAILURE if any(plugin.error for plugin in found) else ExitCode.OK


def _as_json(plugin: Installed) -> dict[str, object]:
    return {
        "name": plugin.name,
        "distributions": list(plugin.distributions),
        "object": plugin.object or None,
        "file": plugin.file or None,
        "line": plugin.line,
        "extensionPoints": list(plugin.points),
        "hooks": list(plugin.hooks),
        "requiresApi": plugin.requires_api,
        "api": API_VERSION,
        **plugin.declared,
        "args": plugin.args,
        **({"error": plugin.error} if plugin.error else {}),
    }


def _as_table(found: list[Installed]) -> PlainTable:
    table = PlainTable(box=None, pad_edge=False)
    for heading in ("PLUGIN", "DISTRIBUTION", "API", "EXTENSION POINTS"):
        table.add_column(heading, overflow="fold")
    for plugin in found:
        points = "cannot be used, see below" if plugin.error else ", ".join(plugin.points)
        where = plugin.distributions or plugin.file
        table.add_row(plugin.name, where, plugin.requires_api or "", points)
    return table
