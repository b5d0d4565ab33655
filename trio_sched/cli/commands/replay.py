"""``trio-sched replay``: makes the decisions of a recording again, and shows which are others."""

from __future__ import annotations

import math
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from trio_sched.cli.commands.progress import shown_progress
from trio_sched.cli.commands.simulation_options import echo_data, one_error, read_time, set_up_log, settings_of
from trio_sched.cli.flags.cluster_options import FileName
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection, plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.recording.records import Configured
from trio_sched.replaying.recorded_manifests import RecordedManifests
from trio_sched.replaying.replay import ReplayPlan, SettingsOf, replay
from trio_sched.replaying.report import as_data, as_lines

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
    help="Fail also where decisions could not be compared, or a part of the recording cannot be read.",
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
@plugin_options
@click.option(
    "-v", "--verbosity", type=click.IntRange(min=0), default=0, help="From 1 on, show the scheduler's log on stderr."
)
def replay_command(
    folder: Path,
    config: Path | None,
    feature_gates: str | None,
    begins: datetime | None,
    ends: datetime | None,
    verify: bool,
    output: str,
    manifests: Path | None,
    every_pod: bool,
    verbosity: int,
    **options: Any,
) -> int:
    """Make the decisions again that --record has written to DIR, each in the state of the cluster of its moment.

    Without --config they must be the same; with it, or with other plugins, those are shown that would have been others.
    What follows from a decision is always what was recorded. The exit code is 0 if all are the same, 1 if some are
    others, and 3 if something is wrong.
    """
    set_up_log(verbosity)
    with one_error():
        if manifests is not None:
            _write_manifests(folder, manifests)
            return ExitCode.OK
        selection = selection_of(options)
        with shown_progress() as progress, tempfile.TemporaryDirectory() as scratch:
            progress.begin("decisions made again")
            plan = ReplayPlan(
                folder=folder,
                settings_of=_settings_of(config, feature_gates, selection, Path(scratch)),
                is_same_configuration=config is None and feature_gates is None and not selection.has_files,
                from_seconds=-math.inf if begins is None else begins.timestamp(),
                until_seconds=math.inf if ends is None else ends.timestamp(),
                progress=lambda decisions: progress.count(decisions, decisions),
            )
            result = replay(plan)
        if output == "table":
            for line in as_lines(result, every_pod=every_pod):
                click.echo(line)
        else:
            echo_data(as_data(result), output)
    if verify and not result.is_complete:
        return ExitCode.NO_ANSWER
    return _DIFFERENT if result.different else ExitCode.OK


def _write_manifests(folder: Path, path: Path) -> None:
    """Write the cluster of a recording as JSON lines.

    Raises:
        TrioSchedError: it is no recording.
        click.ClickException: the file cannot be written.
    """
    recorded = RecordedManifests()
    recorded.read(folder)
    try:
        with path.open("wb") as file:
            file.writelines(msgspec.json.encode(one) + b"\n" for one in recorded.manifests())
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from error
    for kind, count in recorded.left_out.items():
        click.echo(f"Warning: left out: {count} {kind}, whose contents are not recorded", err=True)


def _settings_of(
    config: Path | None, feature_gates: str | None, selection: PluginSelection, scratch: Path
) -> SettingsOf:
    """What to schedule with, given what was recorded."""

    def settings(recorded: Configured) -> DaemonSettings:
        gates = feature_gates
        if gates is None:
            gates = ",".join(f"{name}={str(value).lower()}" for name, value in sorted(recorded.gates.items()))
        if config is not None:
            return settings_of(config, gates, selection)
        file = scratch / "recorded.yaml"
        file.write_text(recorded.configuration, encoding="utf-8")
        try:
            return settings_of(file, gates, selection)
        except ConfigError as error:
            raise error.within("the recorded configuration cannot be used; give one with --config: ") from error

    return settings
