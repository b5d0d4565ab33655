"""``trio-sched compare``: the same cluster under two configurations, or with two sets of nodes."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import click
from attrs import evolve, frozen

from trio_sched.cli.flags.cluster_options import FileName, cluster_of, cluster_options
from trio_sched.cli.options.progress import shown_progress
from trio_sched.cli.options.simulation_options import (
    described_inputs,
    echo_data,
    one_error,
    set_up_log,
    settings_of,
    simulation_options,
)
from trio_sched.cli.options.version_options import Versions
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection, plugin_options, selection_of
from trio_sched.cli.process.no_answer import AnswerCommand
from trio_sched.cli.process.terminal import answer_console
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.comparison import Verdict, compare_plans
from trio_sched.simulation.loaded_plugins import kinds_that_plugins_watch
from trio_sched.simulation.report.comparison_text import comparison_as_data, comparison_as_tables
from trio_sched.simulation.simulated_run import Plan, refuse_extenders, run_plan, say_on_stderr, scheduler_names
from trio_sched.simulator.manifests.manifests import Manifest

_CODES: Final = {Verdict.SAME: 0, Verdict.DIFFERENT: 1, Verdict.WORSE: 2}


@frozen(kw_only=True)
class Side:
    """One of the two."""

    config: Path | None
    files: tuple[Path, ...]
    """What only this side has."""

    @property
    def name(self) -> str:
        """What it is, in words."""
        return " with ".join([str(self.config or "the defaults"), *map(str, self.files)])


def _sides(configs: tuple[Path, ...], more: tuple[Path, ...]) -> tuple[Side, Side]:
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
        return Side(config=first, files=files[0]), Side(config=configs[0], files=files[1])
    first, second = configs or (None, None)
    return Side(config=first, files=files[0]), Side(config=second, files=files[1])


@click.command(cls=AnswerCommand, short_help="Schedule a cluster in two ways, and show what differs.")
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
    kubernetes_version: str | None,
    emulated_version: str,
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
    with one_error():
        cluster = cluster_of(options)
        return compared(
            cluster,
            sides,
            versions=Versions.of_options(
                kubernetes_version, emulated_version, cluster.live.settings if cluster.live else None
            ),
            selection=selection_of(options),
            feature_gates=feature_gates,
            own_flags=[f"--plugin-failure-policy={failure_policies}"] if failure_policies else [],
            seed=seed,
            for_seconds=for_seconds,
            begins=begins or datetime.now(UTC),
            output=output,
            every_pod=every_pod,
        )


def compared(
    cluster: ClusterFiles,
    sides: tuple[Side, Side],
    *,
    versions: Versions,
    selection: PluginSelection,
    feature_gates: str,
    own_flags: Sequence[str],
    seed: int,
    for_seconds: float | None,
    begins: datetime,
    output: str,
    every_pod: bool,
    check: Callable[[Sequence[Manifest]], object] = lambda _manifests: None,
) -> int:
    """Compare *sides* on *cluster*, show it, and return the exit code; the rest are options of `compare`.

    Args:
        cluster: what both have.
        sides: what each has of its own.
        versions: what both act as.
        selection: the plugins in files.
        feature_gates: as the option says them.
        own_flags: more flags of the daemon.
        seed: of what chance decides.
        for_seconds: how long, in the cluster's time; None: until it is settled.
        begins: the cluster's time at the beginning.
        output: how to show it.
        every_pod: whether tables list every pod that has moved.
        check: is called with the objects of each side before anything is simulated; it may refuse them.

    Raises:
        TrioSchedError: something is wrong with the cluster or a configuration; possibly in an exception group.
    """
    say = cache(say_on_stderr)  # what was said of the other side already is not said again
    plans: list[Plan] = []
    with shown_progress() as progress:
        both = [settings_of(side.config, feature_gates, selection, [*versions.flags, *own_flags]) for side in sides]
        for settings in both:
            refuse_extenders(settings)
        watched = kinds_that_plugins_watch(both) if cluster.live else ()
        for side, settings in zip(sides, both, strict=True):
            files = (*cluster.files, *side.files)
            read = evolve(cluster, files=files, kubernetes_version=versions.kubernetes).load
            manifests = read(scheduler_names(settings), say, progress.begin, watched)
            check(manifests)
            plan = Plan(
                settings=settings,
                manifests=manifests,
                seed=seed,
                kubernetes_version=versions.kubernetes,
                begins=begins,
                for_seconds=for_seconds,
                say=say,
            )
            plans.append(plan)
        progress.begin("pods decided on")
        comparison = compare_plans(plans[0], plans[1], partial(run_plan, progress=progress.count))
    names = sides[0].name, sides[1].name
    if output == "table":
        console = answer_console()
        for part in comparison_as_tables(comparison, names, every_pod=every_pod):
            console.print(part)
    elif output == "html":
        from trio_sched.simulation.report.outcome_page import comparison_as_page

        inputs = described_inputs(cluster, names, feature_gates, selection, seed, begins)
        click.echo(comparison_as_page(comparison, names, list(inputs)), nl=False)
    else:
        echo_data(comparison_as_data(comparison), output)
    return _CODES[comparison.verdict]
