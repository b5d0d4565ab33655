"""``make faults``: faults in front of trio-sched and of kube-scheduler, and how soon each binds pods again."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import trio

from contrib.control_plane.servers import Assets, AssetsMissing, find_assets
from contrib.faults.checks import problems_of
from contrib.faults.cluster import TRIO_SCHED, Cluster, NotBound, cluster
from contrib.faults.faults import FAULTS, Fault
from contrib.faults.table import OURS, THEIRS, Outcome, Table
from trio_sched.errors import first_leaf

PAUSE_SECONDS = 2.0
"""Between two faults."""


@click.command()
@click.option("--only", multiple=True, help="Faults whose name contains this text; can be given again.")
@click.option("--alone", is_flag=True, help="Without kube-scheduler.")
@click.option("--seed", default=1, show_default=True, help="Of what is random.")
@click.option("--write", type=click.Path(path_type=Path), help="The page to write the table into.")
def main(only: Sequence[str], alone: bool, seed: int, write: Path | None) -> None:
    """Put faults in front of trio-sched and of kube-scheduler."""
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        raise SystemExit(f"faults: {missing}") from missing
    faults = [fault for fault in FAULTS if not only or any(text in fault.name for text in only)]
    if not faults:
        raise SystemExit(f"faults: none has a name with {' or '.join(only)}")
    logging.basicConfig(level=logging.ERROR)
    table = Table(assets, seed)
    trio.run(_run_all, assets, (OURS,) if alone else (OURS, THEIRS), faults, seed, table)
    click.echo(table.text())
    if write is not None:
        table.write(write)
    raise SystemExit(1 if table.failures else 0)


async def _run_all(assets: Assets, names: Sequence[str], faults: Sequence[Fault], seed: int, table: Table) -> None:
    """Each scheduler in a cluster of its own, side by side: most of the time they wait."""
    with tempfile.TemporaryDirectory(prefix="trio-sched-faults-") as folder:
        async with trio.open_nursery() as nursery:
            for name in names:
                own = Path(folder) / name
                own.mkdir()
                command = TRIO_SCHED if name == OURS else (str(assets.kube_scheduler),)
                nursery.start_soon(_run, assets, own, name, command, faults, seed, table)


async def _run(
    assets: Assets, folder: Path, name: str, command: Sequence[str], faults: Sequence[Fault], seed: int, table: Table
) -> None:
    async with cluster(assets, folder, command, seed=seed) as here:
        for fault in faults:
            if fault.only_ours and not here.is_ours:
                continue
            outcome = await outcome_of(here, fault)
            table.add(name, fault, outcome)
            click.echo(f"{name:15} {fault.name:60} {outcome}", err=True)


async def _once(here: Cluster, fault: Fault, outcome: Outcome) -> None:
    async with trio.open_nursery() as nursery:
        if not fault.quiet:
            nursery.start_soon(here.load.run)
        try:
            measured = await fault.inject(here)
            outcome.seconds.append(measured if measured is not None else await here.seconds_to_bind())
        except NotBound:
            outcome.seconds.append(math.inf)
        nursery.cancel_scope.cancel()
    outcome.problems += [*here.problems, *await problems_of(here)]
    here.problems.clear()
    await trio.sleep(PAUSE_SECONDS)


async def outcome_of(here: Cluster, fault: Fault) -> Outcome:
    """Make *fault*, as often as it says; a fault that cannot be made is a problem in its outcome."""
    outcome = Outcome()
    if fault.missing:
        outcome.problems.append(f"left out: {fault.missing}")
        return outcome
    try:
        if fault.fresh:
            await here.restart_scheduler()
        for _ in range(fault.times):
            await _once(here, fault, outcome)
    except Exception as problem:  # the other faults can be made all the same
        outcome.seconds.append(math.inf)
        leaf = first_leaf(problem) if isinstance(problem, BaseExceptionGroup) else problem
        outcome.problems.append(f"could not be made: {leaf!r}"[:300])
        await here.repair()
    outcome.answers = list(here.answers)
    here.answers.clear()
    return outcome


if __name__ == "__main__":
    main()
