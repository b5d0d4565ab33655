"""``trio-sched compare``: the same cluster under two configurations, or with two sets of nodes."""

from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Final

import click
from attrs import evolve, frozen

from trio_sched.cli.commands.progress import shown_progress
from trio_sched.cli.commands.simulation_options import (
    described_inputs,
    echo_data,
    one_error,
    set_up_log,
    settings_of,
    simulation_options,
)
from trio_sched.cli.flags.cluster_options import FileName, cluster_of, cluster_options
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.terminal import answer_console
from trio_sched.simulation.comparison import Verdict, compare_plans
from trio_sched.simulation.loaded_plugins import kinds_that_plugins_watch
from trio_sched.simulation.report.comparison_text import comparison_as_data, comparison_as_tables
from trio_sched.simulation.simulated_run import Plan, refuse_extenders, run_plan, say_on_stderr, scheduler_names

_CODES: Final = {Verdict.SAME: 0, Verdict.DIFFERENT: 1, Verdict.WORSE: 2}


class _NotCompared(click.ClickException):
    """An error of this command, which has a code of its own, because 1 and 2 are answers."""

    exit_code = ExitCode.NO_ANSWER

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Show it as any other."""
        self.error.show(file)


class _Comparing(click.Command):
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises:
            _NotCompared: in place of any other error of click.
        """
        try:
            return super().main(*args, **kwargs)
        except click.ClickException as error:
            raise _NotCompared(error) from error


@frozen(kw_only=True)
class _Side:
    """One of the two."""

    config: Path | None
    files: tuple[Path, ...]
    """What only this side has."""

    @property
    def name(self) -> str:
        """What it is, in words."""
        return " with ".join([str(self.config or "the defaults"), *map(str, self.files)])


def _sides(configs: tuple[Path, ...], more: tuple[Path, ...]) -> tuple[_Side, _Side]:
    """What each option stands for: given twice, one for each side.

    Raises:
        click.UsageError: there is nothing to compare, or more than two.
    """
    if len(configs) > 2 or len(more) > 2:
        raise click.UsageError("two are compared: give --config and --with twice at most")
    if not more and not configs:
        raise click.UsageError("there is nothing to compare; give --config once more, or --with")
    files = ((), more) if len(more) < 2 else ((more[0],), (more[1],))
    if len(configs) == 1:
        # Where the nodes differ, the configuration is that of both.
        first = configs[0] if more else None
        return _Side(config=first, files=files[0]), _Side(config=configs[0], files=files[1])
    first, second = configs or (None, None)
    return _Side(config=first, files=files[0]), _Side(config=second, files=files[1])


@click.command(cls=_Comparing, short_help="Schedule a cluster in two ways, and show what differs.")
@cluster_options
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=FileName(path_type=Path),
    help="A KubeSchedulerConfiguration; twice: one for each side; once: of the second, or with --with of both.",
)
@click.option(
    "--with",
    "more",
    multiple=True,
    type=FileName(path_type=Path),
    help="Manifests of the second side only, such as more nodes; twice: one for each side.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="How to show it.",
)
@click.option("--pods", "every_pod", is_flag=True, help="In the table, list every pod that has moved.")
@simulation_options
@plugin_options
@click.option(
    "-v", "--verbosity", type=click.IntRange(min=0), default=0, help="From 1 on, show the scheduler's log on stderr."
)
def compare(
    configs: tuple[Path, ...],
    more: tuple[Path, ...],
    feature_gates: str,
    output: str,
    every_pod: bool,
    seed: int,
    for_seconds: float | None,
    begins: datetime | None,
    failure_policies: str,
    verbosity: int,
    **options: Any,
) -> int:
    """Schedule the same cluster twice, and show side by side what becomes of it, which pods have moved, and why.

    The exit code is 0 if every pod is on the same node, 1 if some are elsewhere, 2 if fewer have a node with the
    second, and 3 if something is wrong.
    """
    sides = _sides(configs, more)
    if Path("-") in (*options["files"], *more):
        raise click.UsageError("the files are read twice, which standard input cannot be; write it to a file")
    set_up_log(verbosity)
    own_flags = [f"--plugin-failure-policy={failure_policies}"] if failure_policies else []
    say = cache(say_on_stderr)  # what was said of the other side already is not said again
    with one_error():
        cluster = cluster_of(options)
        plans: list[Plan] = []
        begin = begins or datetime.now(UTC)
        with shown_progress() as progress:
            both = [settings_of(side.config, feature_gates, selection_of(options), own_flags) for side in sides]
            for settings in both:
                refuse_extenders(settings)
            watched = kinds_that_plugins_watch(both) if cluster.live else ()
            for side, settings in zip(sides, both, strict=True):
                read = evolve(cluster, files=(*cluster.files, *side.files)).load
                plan = Plan(
                    settings=settings,
                    manifests=read(scheduler_names(settings), say, progress.begin, watched),
                    seed=seed,
                    begins=begin,
                    for_seconds=for_seconds,
                    say=say,
                )
                plans.append(plan)
            progress.begin("pods decided on")
            comparison = compare_plans(plans[0], plans[1], partial(run_plan, progress=progress.count))
        if output == "table":
            console = answer_console()
            for part in comparison_as_tables(comparison, (sides[0].name, sides[1].name), every_pod=every_pod):
                console.print(part)
        elif output == "html":
            from trio_sched.simulation.report.outcome_page import comparison_as_page

            names = sides[0].name, sides[1].name
            inputs = described_inputs(cluster, names, feature_gates, selection_of(options), seed, begin)
            click.echo(comparison_as_page(comparison, names, list(inputs)), nl=False)
        else:
            echo_data(comparison_as_data(comparison), output)
    return _CODES[comparison.verdict]
