"""``trio-sched bench-plugin``: what a plugin costs per pod."""

from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from trio_sched.cli.flags.cluster_options import FileName
from trio_sched.cli.options.simulation_options import echo_data, one_error, set_up_log, settings_of
from trio_sched.cli.plugin_loading.plugin_selection import plugin_options, selection_of
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.terminal import answer_console
from trio_sched.simulation.plugin_bench import Bench, Measured, measure_plugin
from trio_sched.simulation.simulated_run import refuse_extenders
from trio_sched.simulation.tables import table
from trio_sched.simulator.manifests.manifests import ManifestError, read_manifests

_HELP: Final = """\
Measure what the plugin NAME costs: the same pods are scheduled without it and with it, on a cluster in memory.

Before it is measured some pods run already, and others are scheduled to warm up. The figures are processor time per
pod; the difference of the medians is what the plugin costs. In a run of its own every call of its hooks is timed; an
async hook counts once more each time that it goes on.

With --output json: microsecondsPerPod (without, with: a figure for each round), cost, placed, hooks (hook, calls,
microseconds).
"""
_MICRO: Final = 1e6


@click.command(help=_HELP, short_help="Measure what a plugin costs per pod.")
@click.argument("name", metavar="NAME")
@click.option("--nodes", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Nodes.")
@click.option("--running", type=click.IntRange(0), default=2000, show_default=True, help="Pods that run already.")
@click.option("--warm-up", type=click.IntRange(0), default=100, show_default=True, help="Pods that warm up.")
@click.option("--pods", type=click.IntRange(1), default=500, show_default=True, help="Pods that are measured.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often each way, in turn.")
@click.option(
    "--pod", "pod_file", type=FileName(path_type=Path), help="A manifest of a pod; all pods are copies of it."
)
@click.option(
    "--config", type=FileName(path_type=Path), help="A KubeSchedulerConfiguration; the defaults if not given."
)
@click.option("--feature-gates", default="", help="Features to switch: Gate=true|false,...")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@plugin_options
def bench_plugin(
    name: str,
    nodes: int,
    running: int,
    warm_up: int,
    pods: int,
    rounds: int,
    pod_file: Path | None,
    config: Path | None,
    feature_gates: str,
    output: str,
    **options: Any,
) -> ExitCode:
    """Measure the plugin, and show the figures."""
    set_up_log(0)
    with one_error():
        settings = settings_of(config, feature_gates, selection_of(options))
        refuse_extenders(settings)
        pod = None if pod_file is None else _pod_in(pod_file)
        bench = Bench(nodes=nodes, running=running, warm_up=warm_up, pods=pods, rounds=rounds, pod=pod)
        measured = measure_plugin(settings, name, bench)
        if output == "json":
            echo_data(_as_json(measured), output)
        else:
            _show(name, bench, measured)
    return ExitCode.OK


def _pod_in(path: Path) -> dict[str, Any]:
    """The only manifest in *path*, which must be a pod.

    Raises:
        click.BadParameter: it is none.
        TrioSchedError: the file cannot be read.
    """
    read = read_manifests([path])
    if read.problems:
        raise ManifestError(read.problems)
    found = [one.fields for one in read.manifests if one.fields.get("kind") == "Pod"]
    if len(found) != 1:
        raise click.BadParameter(f"{path} has {len(found)} pods; give a file with one", param_hint="--pod")
    return found[0]


def _as_json(measured: Measured) -> dict[str, Any]:
    def micro(seconds: float) -> float:
        return round(seconds * _MICRO, 1)

    return {
        "microsecondsPerPod": {
            "without": [micro(seconds) for seconds in measured.without],
            "with": [micro(seconds) for seconds in measured.with_plugin],
        },
        "cost": micro(measured.cost),
        "placed": measured.placed,
        "hooks": [{"hook": one.hook, "calls": one.calls, "microseconds": micro(one.seconds)} for one in measured.hooks],
    }


def _show(name: str, bench: Bench, measured: Measured) -> None:
    console = answer_console()
    times = "once" if bench.rounds == 1 else f"{bench.rounds} times"
    click.echo(
        f"{bench.pods:,} pods on {bench.nodes:,} nodes with {bench.running:,} running pods, after {bench.warm_up:,} to "
        f"warm up; {times} each way\n"
    )
    figures = table("", "PROFILE", "µs PER POD", "LEAST", "MOST", right=("µs PER POD", "LEAST", "MOST"))
    for profile, seconds in (("without it", measured.without), (f"with {name}", measured.with_plugin)):
        cells = (median(seconds), min(seconds), max(seconds))
        figures.add_row(profile, *(f"{one * _MICRO:.0f}" for one in cells))
    figures.add_row("difference", f"{measured.cost * _MICRO:+.0f}", "", "")
    console.print(figures)
    if measured.placed < bench.pods:
        console.print(f"{measured.placed} of {bench.pods} pods found a node")
    if measured.hooks:
        numbers = ("CALLS PER POD", "µs PER CALL", "µs PER POD")
        hooks = table("", "HOOK", *numbers, right=numbers)
        for one in measured.hooks:
            per_pod, total = one.calls / bench.pods, one.seconds * _MICRO
            hooks.add_row(one.hook, f"{per_pod:.1f}", f"{total / one.calls:.1f}", f"{total / bench.pods:.1f}")
        console.print(hooks)
