"""``trio-sched replay``: makes the decisions of a recording again; shows which are others, also by its exit code."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from trio_sched.cli.flags.cluster_options import FileName
from trio_sched.cli.options.progress import Progress, shown_progress
from trio_sched.cli.options.recorded_settings import RecordedSettings
from trio_sched.cli.options.simulation_options import echo_data, one_error, read_time, set_up_log
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.cli.process.terminal import answer_console
from trio_sched.errors import TrioSchedError
from trio_sched.replaying.recorded_manifests import write_manifests
from trio_sched.replaying.replay import ReplayPlan, replay, with_failure_policies
from trio_sched.replaying.report import as_data, as_lines
from trio_sched.replaying.simulated_outcomes import compare_simulated
from trio_sched.simulation.comparison import Comparison
from trio_sched.simulation.report.comparison_text import comparison_as_data, comparison_as_tables

_DIFFERENT: Final = 1


@click.command(
    name="replay",
    cls=AnswerCommand,
    short_help="Make the decisions of a recording again, and show which are others.",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--config",
    type=FileName(path_type=Path),
    help="Another KubeSchedulerConfiguration: show which pods it would have placed elsewhere.",
)
@click.option("--feature-gates", default=None, help="Other feature gates than the recorded ones: Gate=true|false,...")
@click.option(
    "--emulated-version",
    metavar="1.33..1.37",
    default="",
    help="Another version of kube-scheduler than the recorded one to decide as.",
)
@click.option(
    "--from",
    "begins",
    metavar="TIME",
    callback=read_time,
    help="Compare decisions from then on, as in 2026-03-01T22:00:00Z; what was before is replayed all the same.",
)
@click.option("--until", "ends", metavar="TIME", callback=read_time, help="End the replay then.")
@click.option(
    "--verify",
    is_flag=True,
    help="Fail also where the queue would have returned pods in another order, decisions could not be compared, or a "
    "part of the recording cannot be read.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to show it.",
)
@click.option(
    "--manifests",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Decide nothing, but write the cluster to this file, as manifests whose pods come when they came.",
)
@click.option("--pods", "every_pod", is_flag=True, help="List every decision that is another one.")
@click.option(
    "--outcome/--no-outcome",
    "shows_outcome",
    default=None,
    help="With --config, --feature-gates or --emulated-version, also simulate the recorded cluster as it was and with "
    "these, and show latency, utilisation and preemptions of both, as compare does; on by default.",
)
@plugin_options
@click.option(
    "-v", "--verbosity", type=click.IntRange(min=0), default=0, help="From 1 on, show the scheduler's log on stderr."
)
def replay_command(
    folder: Path,
    config: Path | None,
    feature_gates: str | None,
    emulated_version: str,
    begins: datetime | None,
    ends: datetime | None,
    verify: bool,
    output: str,
    manifests: Path | None,
    every_pod: bool,
    shows_outcome: bool | None,
    verbosity: int,
    **options: Any,
) -> int:
    """Make the decisions again that --record has written to DIR, each in the state of the cluster of its moment.

    They are made as the recorded version of kube-scheduler, unless --emulated-version names another. Without other
    options they must be the same; with them, or with other plugins, those are shown that would have been others.
    What follows from a decision is always what was recorded; what would have become of the cluster is simulated. The
    exit code is 0 if all decisions are the same, 1 if some are others, and 3 if something is wrong.
    """
    set_up_log(verbosity)
    with one_error():
        if manifests is not None:
            _write_manifests(folder, manifests)
            return ExitCode.OK
        selection = selection_of(options)
        has_other = config is not None or feature_gates is not None or bool(emulated_version)
        if shows_outcome and not has_other:
            raise click.UsageError("--outcome compares two configurations; give the other one with --config")
        comparison: Comparison | None = None
        with shown_progress() as progress, tempfile.TemporaryDirectory() as scratch:
            settings = RecordedSettings(config, feature_gates, selection, Path(scratch), emulated_version)
            progress.begin("decisions made again")
            plan = ReplayPlan(
                folder=folder,
                settings_of=settings,
                is_same_configuration=not has_other and not selection.has_files,
                from_seconds=-math.inf if begins is None else begins.timestamp(),
                until_seconds=math.inf if ends is None else ends.timestamp(),
                progress=lambda decisions: progress.count(decisions, decisions),
            )
            result = replay(plan)
            if has_other and shows_outcome is not False and result.first_at is not None:
                comparison = _simulate(folder, settings, result.first_at, progress)
        if output == "table":
            for line in as_lines(result, every_pod=every_pod):
                click.echo(line)
            if comparison is not None:
                console, names = answer_console(), ("as recorded", str(config or feature_gates or emulated_version))
                console.print("\nThe recorded cluster, simulated:")
                for part in comparison_as_tables(comparison, names, every_pod=every_pod):
                    console.print(part)
        else:
            outcome = {} if comparison is None else {"outcome": comparison_as_data(comparison)}
            echo_data({**as_data(result), **outcome}, output)
    if verify and not result.is_complete:
        return ExitCode.NO_ANSWER
    is_other = result.different or (verify and result.out_of_order)
    return _DIFFERENT if is_other else ExitCode.OK


def _write_manifests(folder: Path, path: Path) -> None:
    """Write the cluster of a recording as JSON lines.

    Raises:
        TrioSchedError: it is no recording.
        click.ClickException: the file cannot be written.
    """
    try:
        left_out = write_manifests(folder, path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from error
    for kind, count in left_out.items():
        click.echo(f"Warning: left out: {count} {kind}, whose contents are not recorded", err=True)


def _simulate(folder: Path, settings: RecordedSettings, first_at: float, progress: Progress) -> Comparison | None:
    """The recorded cluster with both configurations; None, with a warning, if it cannot be simulated."""
    assert settings.first is not None, "something was decided"
    try:
        return compare_simulated(
            folder,
            (
                with_failure_policies(settings.as_recorded(settings.first), settings.first),
                with_failure_policies(settings(settings.first), settings.first),
            ),
            begins=datetime.fromtimestamp(first_at, UTC),
            scratch=settings.scratch,
            begin=progress.begin,
            count=progress.count,
        )
    except TrioSchedError as problem:
        click.echo(f"Warning: the recorded cluster is not simulated: {problem}", err=True)
        return None
