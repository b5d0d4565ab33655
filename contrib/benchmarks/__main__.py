"""``python -m contrib.benchmarks``: see the package."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
from attrs import frozen

from contrib.benchmarks import (
    churn,
    counting,
    engine,
    explanations,
    live_page,
    path,
    plugin_costs,
    preemption,
    recording,
    shards,
    start,
    transport,
    watch,
)
from contrib.benchmarks.real.compare import Results, compare
from contrib.benchmarks.real.table import show_results
from contrib.benchmarks.real.workloads import WORKLOADS
from contrib.benchmarks.report import Figure, show, write_json
from contrib.benchmarks.workload import CONSTRAINTS


@frozen(kw_only=True)
class Options:
    """What the benches are given on the command line."""

    nodes: tuple[int, ...]
    pods: int | None
    constraint: str
    kubeconfig: str | None


def _run_path(options: Options) -> Iterator[Figure]:
    return path.run(
        nodes=options.nodes or path.NODES,
        pods=options.pods or path.PODS,
        kubeconfig=options.kubeconfig,
        constraint=options.constraint,
    )


BENCHES: dict[str, Callable[[Options], Iterator[Figure]]] = {
    "start": lambda options: start.run(options.nodes),
    "engine": lambda _: engine.run(),
    "topology": lambda _: counting.run(),
    "transport": lambda _: transport.run(),
    "watch": lambda _: watch.run(),
    "preemption": lambda options: preemption.run(options.nodes, options.pods),
    "churn": lambda options: churn.run(options.nodes),
    "explanations": lambda options: explanations.run(options.nodes),
    "live-page": lambda options: live_page.run(options.nodes),
    "plugins": lambda _: plugin_costs.run(),
    "recording": lambda options: recording.run(options.pods or recording.PODS, options.constraint),
    "shards": lambda options: shards.run(options.nodes, options.pods),
    "path": _run_path,
}
REAL = "real"
RESULTS = Path(__file__).parent / "results"


@click.command()
@click.argument("benches", nargs=-1, type=click.Choice([*BENCHES, REAL]))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file as well.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Run the path bench on this cluster.")
@click.option(
    "--nodes",
    multiple=True,
    type=int,
    help="Cluster sizes of start, preemption, churn, explanations, live-page, shards and path.",
)
@click.option("--pods", type=int, help="Pods of path and shards, preemptors of preemption.")
@click.option(
    "--constraint",
    type=click.Choice(CONSTRAINTS),
    default="plain",
    show_default=True,
    help="Constraints between pods in the path bench.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    type=click.Choice([one.name for one in WORKLOADS]),
    help="Workloads of the real bench.",
)
@click.option(
    "--runs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each scheduler in the real bench."
)
@click.option("--keep", is_flag=True, help=f"Write the figures to {RESULTS.name}/, under the date.")
def main(
    benches: tuple[str, ...],
    json_path: Path | None,
    kubeconfig: str | None,
    nodes: tuple[int, ...],
    pods: int | None,
    constraint: str,
    workloads: tuple[str, ...],
    runs: int,
    keep: bool,
) -> None:
    """Measure trio-sched; without names of BENCHES all of them.

    The bench real compares it with kube-scheduler; it needs etcd, kube-apiserver and kube-scheduler in the folder that
    KUBEBUILDER_ASSETS names, and is left out without them.
    """
    options = Options(nodes=nodes, pods=pods, constraint=constraint, kubeconfig=kubeconfig)
    figures: list[Figure] = []
    results: Results | None = None
    for name in benches or (*BENCHES, REAL):
        click.echo(f"running {name} …", err=True)
        if name == REAL:
            results = compare(workloads, runs=runs)
        else:
            figures.extend(BENCHES[name](options))
    if figures:
        show(figures)
    more = {}
    if results is not None:
        show_results(results)
        figures.extend(results.figures())
        more["real"] = results.as_json()
    for path_ in filter(None, (json_path, RESULTS / f"{datetime.now(UTC):%Y-%m-%d}.json" if keep else None)):
        write_json(figures, path_, **more)


if __name__ == "__main__":
    main()
