"""What the commands that simulate have in common: their options, the daemon's settings, the run and its errors."""

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
from attrs import evolve

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.flags.shadow_options import without_election
from trio_sched.cli.options.daemon_settings import daemon_settings
from trio_sched.cli.options.version_options import version_options
from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.startup.prepare import prepare
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.logs.log_setup import LogSettings, set_up_logging
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.errors import TrioSchedError, first_leaf
from trio_sched.go.durations import parse_duration
from trio_sched.objects.timestamps import SECOND_NS, parse_time
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.simulated_run import EMBEDDED

F = TypeVar("F", bound=Callable[..., Any])

_LATEST: Final = 221_845_392_000.0
"""The beginning of the year 9000: enough is left for a simulation."""
_OUTCOMES: Final = 2
"""The verbosity of the daemon from which on its log says what becomes of pods."""


def read_time(_context: click.Context, _parameter: click.Parameter, text: str | None) -> datetime | None:
    """The moment that *text* is; in UTC without a zone.

    Raises:
        click.BadParameter: it is none, or none that can be simulated.
    """
    if text is None:
        return None
    seconds = parse_time(text)
    if seconds is None or not 0 <= seconds <= _LATEST:
        raise click.BadParameter(f"{text!r} is no time from 1970 to 9000; write for example 2026-03-01T22:00:00Z")
    return datetime.fromtimestamp(seconds, UTC)


def read_duration(_context: click.Context, _option: click.Parameter, text: str | None) -> float | None:
    """``90s``, ``5m``, ``1h30m`` in seconds."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text) / SECOND_NS
    except TrioSchedError as error:
        raise click.BadParameter(f"{text!r} is no duration; write for example 90s, 5m or 1h30m") from error
    if seconds <= 0:
        raise click.BadParameter(f"{text!r} must be longer than nothing")
    return seconds


_OPTIONS: Final = (
    click.option("--feature-gates", default="", help="Features to switch: Gate=true|false,..."),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Where chance comes from; the same seed, the same placements.",
    ),
    version_options,
    click.option(
        "--for",
        "for_seconds",
        metavar="DURATION",
        callback=read_duration,
        help="How long, in the cluster's time; until it is settled if not given.",
    ),
    click.option(
        "--begin",
        "begins",
        metavar="TIME",
        callback=read_time,
        help="The cluster's time at the beginning, as in 2026-03-01T22:00:00Z; now if not given.",
    ),
    click.option(
        "--plugin-failure-policy",
        "failure_policies",
        metavar="NAME=POLICY,...",
        default="",
        help="What becomes of pods when a plugin fails: closed, open or skip:N.",
    ),
)


def simulation_options(command: F) -> F:
    """Add the options of every simulation: gates, seed, versions, duration, beginning and policies."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def set_up_log(verbosity: int) -> None:
    """Log warnings, from a *verbosity* of 1 on also what becomes of pods."""
    set_up_logging(LogSettings(verbosity=max(verbosity, _OUTCOMES) if verbosity else 0))
    if not verbosity:
        logging.getLogger("trio_sched").setLevel(logging.WARNING)


def settings_of(
    config: Path | None, feature_gates: str, selection: PluginSelection, own_flags: Sequence[str] = ()
) -> DaemonSettings:
    """The daemon as it is to run here: serving nothing, and alone, also where the configuration has replicas.

    Raises:
        TrioSchedError: it cannot be run so.
    """
    arguments = ["--secure-port=0"]
    if config is not None:
        arguments.append(f"--config={config}")
    if feature_gates:
        arguments.append(f"--feature-gates={feature_gates}")
    arguments += own_flags
    registry = selection.registry()
    try:
        prepared = prepare(parse_flags(arguments), points_of=PointsByPlugin(registry), connection=EMBEDDED)
    except ConfigError as error:
        raise error.within(f"{config}: " if config else "") from error
    prepared.source.warn()
    settings = daemon_settings(prepared, registry)
    return evolve(settings, config=evolve(without_election(settings.config), sharding=None))


def described_inputs(
    cluster: ClusterFiles,
    configurations: Sequence[str],
    feature_gates: str,
    selection: PluginSelection,
    seed: int,
    begins: datetime,
) -> Iterator[tuple[str, str]]:
    """What is simulated, as names and values for a reader of its report.

    Args:
        cluster: where it comes from, and what is changed of it.
        configurations: what each side runs with, in words.
        feature_gates: as the option says them.
        selection: the plugins in files.
        seed: of what chance decides.
        begins: the cluster's time at the beginning.
    """
    yield "Cluster", ", ".join(cluster.sources)
    if cluster.patterns:
        yield "Placed again", ", ".join(cluster.patterns)
    if cluster.taken_over:
        yield "Schedulers taken over", ", ".join(cluster.taken_over)
    names = ("Configuration",) if len(configurations) == 1 else ("First", "Second")
    yield from zip(names, configurations, strict=True)
    if selection.has_files:
        yield "Plugins", ", ".join((*selection.files, *selection.folders))
    if feature_gates:
        yield "Feature gates", feature_gates
    yield "Seed", str(seed)
    yield "Begins", begins.isoformat(timespec="seconds").replace("+00:00", "Z")


def echo_data(data: Any, output: str) -> None:
    """Print *data* as JSON or YAML."""
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))
    else:
        import yaml  # takes long

        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


@contextmanager
def one_error() -> Generator[None, None, None]:
    """Report the first error as the one that ends the command.

    Raises:
        click.ClickException: in place of a `TrioSchedError`, in a group or not.
        click.Abort: in place of an interruption.
    """
    problem: BaseException | None = None
    try:
        yield
    except* (TrioSchedError, KeyboardInterrupt) as group:
        problem = first_leaf(group)
    if isinstance(problem, KeyboardInterrupt):
        raise click.Abort
    if problem is not None:
        hint = f"\n{problem.hint}" if isinstance(problem, TrioSchedError) and problem.hint else ""
        raise click.ClickException(f"{problem}{hint}")
