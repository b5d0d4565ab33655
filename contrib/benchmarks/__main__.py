"""``python -m contrib.benchmarks``: see the package."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from contrib.benchmarks import counting, engine, path, transport, watch
from contrib.benchmarks.report import Figure, show, write_json
from contrib.benchmarks.workload import CONSTRAINTS

BENCHES: dict[str, Callable[[], Iterator[Figure]]] = {
    "engine": engine.run,
    "topology": counting.run_topology,
    "preemption": counting.run_preemption,
    "transport": transport.run,
    "watch": watch.run,
    "path": path.run,
}


@click.command()
@click.argument("benches", nargs=-1, type=click.Choice(list(BENCHES)))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file as well.")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Run the path bench on this cluster.")
@click.option("--nodes", multiple=True, type=int, help="Cluster sizes of the path bench.")
@click.option("--pods", type=int, default=2_000, show_default=True, help="Pods of the path bench.")
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
    pods: int,
    constraint: str,
) -> None:
    """Measure trio-sched; without names of BENCHES all of them."""
    figures: list[Figure] = []
    for name in benches or BENCHES:
        click.echo(f"running {name} …", err=True)
        if name == "path":
            figures.extend(path.run(nodes=nodes or path.NODES, pods=pods, kubeconfig=kubeconfig, constraint=constraint))
        else:
            figures.extend(BENCHES[name]())
    show(figures)
    if json_path is not None:
        write_json(figures, json_path)


if __name__ == "__main__":
    main()
