"""``make faults``: faults in front of trio-sched and of kube-scheduler, and how soon each binds pods again."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import trio

from contrib.benchmarks.real.servers import Assets, AssetsMissing, find_assets
from contrib.faults.faults import FAULTS, Fault
from contrib.faults.world import TRIO_SCHED, NotBound, World, world

OURS, THEIRS = "trio-sched", "kube-scheduler"


@click.command()
@click.option("--only", default="", help="Faults whose name contains this text.")
@click.option("--alone", is_flag=True, help="Without kube-scheduler.")
@click.option("--seed", default=1, show_default=True, help="Of what is random.")
def main(only: str, alone: bool, seed: int) -> None:
    """Put faults in front of trio-sched and of kube-scheduler."""
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        raise SystemExit(f"faults: {missing}") from missing
    faults = [fault for fault in FAULTS if only in fault.name]
    commands = {OURS: TRIO_SCHED} if alone else {OURS: TRIO_SCHED, THEIRS: (str(assets.kube_scheduler),)}
    for name, command in commands.items():
        with tempfile.TemporaryDirectory(prefix="trio-sched-faults-") as folder:
            trio.run(_run, assets, Path(folder), name, command, faults, seed)


async def _run(
    assets: Assets, folder: Path, name: str, command: Sequence[str], faults: Sequence[Fault], seed: int
) -> None:
    async with world(assets, folder, command, seed=seed) as here:
        for fault in faults:
            recoveries = await _recoveries(here, fault)
            shown = ", ".join(f"{seconds:.2f}" for seconds in recoveries)
            click.echo(f"{name:15} {fault.name:55} {shown}")


async def _recoveries(here: World, fault: Fault) -> list[float]:
    recoveries = []
    if fault.fresh:
        await here.restart_scheduler()
    for _ in range(fault.times):
        await fault.inject(here)
        try:
            recoveries.append(await here.seconds_to_bind())
        except NotBound:
            recoveries.append(float("inf"))
        await trio.sleep(3)
    return recoveries


if __name__ == "__main__":
    main()
