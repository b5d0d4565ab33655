"""``trio-sched plugins``: what is installed, where it comes from, and at which points it acts."""

import json
from importlib.metadata import EntryPoint

import click
from attrs import frozen
from rich.table import Table

from trio_sched.cli.exit_code import ExitCode
from trio_sched.cli.terminal import answer_console
from trio_sched.config.wire_types import POINTS
from trio_sched.engine.plugin_errors import PluginError
from trio_sched.engine.plugin_registry import PluginRegistry, describe_distribution, points_of


@frozen(kw_only=True)
class Installed:
    """One plugin name and the distributions that offer it."""

    name: str
    distributions: tuple[str, ...]
    """The distributions, with version, that offer it; more than one is an error."""
    points: tuple[str, ...]
    """Its extension points, as the configuration file writes them."""
    error: str = ""
    """Why it cannot be used; empty if it can."""


def installed_plugins(registry: PluginRegistry) -> list[Installed]:
    """Load every plugin of *registry* and describe it; one that cannot be loaded does not hide the others."""
    return [_inspect(registry, name) for name in registry.names]


def _inspect(registry: PluginRegistry, name: str) -> Installed:
    points: frozenset[str] = frozenset()
    error = ""
    try:
        points = points_of(registry.load(name))
    except PluginError as problem:
        error = str(problem)
    return Installed(
        name=name,
        distributions=tuple(map(_distribution, registry.entry_points(name))),
        points=tuple(written for written, point in POINTS.items() if point in points),
        error=error,
    )


def _distribution(entry_point: EntryPoint) -> str:
    return describe_distribution(entry_point.dist) if entry_point.dist else entry_point.value


@click.command(short_help="List the installed plugins.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plugins(output: str) -> ExitCode:
    """List the plugins that are installed: their names, distributions and extension points.

    Every one is loaded; one that cannot be is listed with its error.
    """
    found = installed_plugins(PluginRegistry.discover())
    if output == "json":
        click.echo(json.dumps([_as_json(plugin) for plugin in found], indent=2))
    else:
        answer_console().print(_as_table(found))
        for plugin in found:
            if plugin.error:
                click.echo(f"{plugin.name}: {plugin.error}")
    return ExitCode.OK


def _as_json(plugin: Installed) -> dict[str, object]:
    return {
        "name": plugin.name,
        "distributions": list(plugin.distributions),
        "extensionPoints": list(plugin.points),
        **({"error": plugin.error} if plugin.error else {}),
    }


def _as_table(found: list[Installed]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("PLUGIN", "DISTRIBUTION", "EXTENSION POINTS"):
        table.add_column(heading, overflow="fold")
    for plugin in found:
        points = "cannot be used, see below" if plugin.error else ", ".join(plugin.points)
        table.add_row(plugin.name, "\n".join(plugin.distributions), points)
    return table
