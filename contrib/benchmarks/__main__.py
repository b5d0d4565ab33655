"""``python -m contrib.benchmarks``: see the package."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click
from attrs import frozen

from contrib.benchmarks import churn, counting, engine, path, preemption, start, transport, watch
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
    "path": _run_path,
}


@click.command()
@click.argument("benches", nargs=-1, type=click.Choice(list(BENCHES)))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file as well.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Run the path bench on this cluster.")
@click.option("--nodes", multiple=True, type=int, help="Cluster sizes of start, preemption, churn and path.")
@click.option("--pods", type=int, help="Pods of path, preemptors of preemption.")
@click.option(
    "--constraint",
    type=click.Choice(CONSTRAINTS),
    default="plain",
    show_default=True,
    help="Constraints between pods in the path bench.",
)
def main(
    benches: tuple[str, ...],
    json_path: Path | None,
    kubeconfig: str | None,
    nodes: tuple[int, ...],
    pods: int | None,
    constraint: str,
) -> None:
    """Measure trio-sched; without names of BENCHES all of them."""
    options = Options(nodes=nodes, pods=pods, constraint=constraint, kubeconfig=kubeconfig)
    figures: list[Figure] = []
    for name in benches or BENCHES:
        click.echo(f"running {name} …", err=True)
        figures.extend(BENCHES[name](options))
    show(figures)
    if json_path is not None:
        write_json(figures, json_path)


if __name__ == "__main__":
    main()
