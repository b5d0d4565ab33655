"""``trio-sched simulate``: schedules a cluster that is described in files."""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

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
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.daemon.reload import ReloadRequests
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.simulation.explanations import CannotExplain, check_explained
from trio_sched.simulation.loaded_plugins import kinds_that_plugins_watch
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.served_cluster import serve_cluster
from trio_sched.simulation.simulated_run import Plan, refuse_extenders, run_plan, scheduler_names
from trio_sched.simulator.manifests.manifests import Manifest


def _read_address(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, int] | None:
    """``HOST:PORT``, the host possibly in brackets or left out."""
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or len(port) > 5 or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is no HOST:PORT; write for example 127.0.0.1:8001")
    return host.strip("[]") or "127.0.0.1", int(port)


@click.command(short_help="Schedule a cluster on an embedded API server.")
@cluster_options
@click.option(
    "--config", type=FileName(path_type=Path), help="A KubeSchedulerConfiguration; the defaults if not given."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="How to show it.",
)
@click.option("--pods", "every_pod", is_flag=True, help="In the table, list every pod instead of every workload.")
@click.option("--nodes", "every_node", is_flag=True, help="In the table, list every node of a large cluster.")
@click.option(
    "--explain",
    "explained",
    metavar="POD|PATTERN|pending",
    multiple=True,
    help="Show what every plugin says of every node for this pod, or for one of this workload, NAMESPACE/NAME; for the "
    "pods of a pattern, as in shop/web-*; or for a pending pod of each workload. May be repeated.",
)
@click.option(
    "--serve",
    "address",
    metavar="HOST:PORT",
    callback=_read_address,
    help="Keep the cluster alive at HOST:PORT for kubectl, in real time.",
)
@simulation_options
@plugin_options
@click.option(
    "--trace-plugins",
    metavar="PODS",
    default="",
    help="Show calls of plugins on stderr, for pods like namespace/name* or app=web; +hint, +sign: those too.",
)
@click.option(
    "--record",
    metavar="DIR",
    default="",
    help="Record what decisions depend on, and these, into this folder, for trio-sched replay.",
)
@click.option("--record-hash-names", is_flag=True, help="Record hashes in place of names and values of labels.")
@click.option(
    "-v", "--verbosity", type=click.IntRange(min=0), default=0, help="From 1 on, show the scheduler's log on stderr."
)
def simulate(
    config: Path | None,
    feature_gates: str,
    output: str,
    every_pod: bool,
    every_node: bool,
    explained: tuple[str, ...],
    seed: int,
    kubernetes_version: str | None,
    emulated_version: str,
    for_seconds: float | None,
    begins: datetime | None,
    address: tuple[str, int] | None,
    failure_policies: str,
    trace_plugins: str,
    record: str,
    record_hash_names: bool,
    verbosity: int,
    **options: Any,
) -> ExitCode:
    """Schedule the cluster that is described in files or listed from where it runs, and show what becomes of it.

    The real daemon runs on an API server in memory, and pretend kubelets start what it places. Time is simulated, so
    minutes pass at once; with --serve it is real, and kubectl can look on and interfere.
    """
    if address is not None and (for_seconds is not None or output != "table" or every_pod or every_node or explained):
        raise click.UsageError(
            "--serve shows nothing by itself; leave out --for, --output, --pods, --nodes and --explain"
        )
    if address is not None and begins is not None:
        raise click.UsageError("--serve runs in real time; leave out --begin")
    if record_hash_names and not record:
        raise click.UsageError("--record-hash-names says how names are recorded; give --record DIR with it")
    set_up_log(verbosity)
    with one_error():
        cluster = cluster_of(options)
        running = cluster.live.settings if cluster.live else None
        versions = Versions.of_options(kubernetes_version, emulated_version, running)
        cluster, own_flags = evolve(cluster, kubernetes_version=versions.kubernetes), versions.flags
        if failure_policies:
            own_flags.append(f"--plugin-failure-policy={failure_policies}")
        if trace_plugins:
            own_flags.append(f"--trace-plugins={trace_plugins}")
            logging.getLogger("trio_sched.daemon.plugins.plugin_trace").setLevel(logging.INFO)
        if record:
            own_flags += [f"--record={record}", f"--record-hash-names={record_hash_names}".lower()]
        read_settings = partial(settings_of, config, feature_gates, selection_of(options), own_flags)
        settings = read_settings()
        if address is None:
            refuse_extenders(settings)
        with shown_progress() as progress:
            watched = kinds_that_plugins_watch([settings]) if cluster.live else ()
            manifests = cluster.load(scheduler_names(settings), begin=progress.begin, watched=watched)
            _check_explained(explained, manifests)
            begin = begins or datetime.now(UTC)
            plan = Plan(
                settings=settings,
                manifests=manifests,
                seed=seed,
                kubernetes_version=versions.kubernetes,
                begins=begin,
                for_seconds=for_seconds,
                explained=lambda _outcome: dict.fromkeys(explained, ()),
            )
            outcome = None
            if address is None:
                progress.begin("pods decided on")
                outcome = run_plan(plan, progress.count)
        if outcome is not None:
            name = str(config or "the defaults")
            inputs = described_inputs(cluster, [name], feature_gates, selection_of(options), seed, begin)
            _show(outcome, output, list(inputs), every_pod=every_pod, every_node=every_node)
        elif address is not None:
            serve_cluster(plan, *address, _announce, _reload_requests(config, selection_of(options), read_settings))
    return ExitCode.OK


def _check_explained(names: tuple[str, ...], manifests: list[Manifest]) -> None:
    """Refuse names that can be those of no pod.

    Raises:
        click.UsageError: there is such a name.
    """
    try:
        check_explained(names, manifests)
    except CannotExplain as error:
        raise click.UsageError(str(error)) from error


@frozen
class _Files:
    """What the options name, read again when it has changed."""

    path: str
    read: Callable[[], DaemonSettings]


def _reload_requests(
    config: Path | None, selection: PluginSelection, read_settings: Callable[[], DaemonSettings]
) -> ReloadRequests:
    """Reloads when a file is saved; a line says each time that it is in force."""
    return ReloadRequests(
        _Files(str(config or ""), read_settings),
        WakeUp(),
        watched=partial(_watched, config, selection),
        on_success=lambda name: click.echo(f"Reloaded {name}; pods that wait are tried again.", err=True),
    )


def _watched(config: Path | None, selection: PluginSelection) -> list[str]:
    """The files whose change is a reason to reload."""
    return [*([str(config)] if config else []), *selection.watched_files()]


def _show(
    outcome: Outcome, output: str, inputs: Sequence[tuple[str, str]], *, every_pod: bool, every_node: bool
) -> None:
    """Print *outcome* of *inputs*; what only another form of it needs is not imported."""
    if output in ("json", "yaml"):
        from trio_sched.simulation.report.outcome_data import outcome_as_data

        echo_data(outcome_as_data(outcome), output)
    elif output == "html":
        from trio_sched.simulation.report.outcome_page import outcome_as_page

        click.echo(outcome_as_page(outcome, inputs), nl=False)
    else:
        from trio_sched.cli.process.terminal import answer_console
        from trio_sched.simulation.report.outcome_text import outcome_as_tables

        console = answer_console()
        for part in outcome_as_tables(outcome, every_pod=every_pod, every_node=every_node, width=console.width):
            console.print(part)


def _announce(url: str, kubeconfig: Path) -> None:
    command = f"kubectl --kubeconfig {kubeconfig} get pods -A -o wide"
    click.echo(f"The cluster is alive at {url}. In another terminal:\n\n  {command}\n")
    click.echo(f"In a browser: {url}/ui\n")
    click.echo("Ctrl-C ends it.", err=True)
