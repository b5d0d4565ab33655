"""``trio-sched shards``: who holds which shard of a cluster whose schedulers share the work, and what waits."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click
import trio

from trio_sched.cli.options.simulation_options import echo_data, one_error
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.terminal import answer_console
from trio_sched.daemon.sharding.shard_report import ShardReport, read_shards
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulation.tables import line, table
from trio_sched.simulation.units import plural

_NUMBERS = ("shard", "renewed", "nodes", "pods", "pending")


@click.command(short_help="Show who holds which shard, where replicas share the work.")
@click.option("--kubeconfig", metavar="FILE", default="", help="The kubeconfig; $KUBECONFIG or ~/.kube/config without.")
@click.option("--context", metavar="NAME", default="", help="The context; the current one without.")
@click.option("--lease", default="kube-scheduler", show_default=True, help="The lease of leader election.")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="The namespace of the leases.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    metavar="NAME",
    multiple=True,
    default=("default-scheduler",),
    show_default=True,
    help="The schedulerName of pods that count. May be repeated.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def shards(
    kubeconfig: str, context: str, lease: str, lease_namespace: str, scheduler_names: tuple[str, ...], output: str
) -> ExitCode:
    """Show who holds which shard, and what waits for it, where replicas share the work (sharding: {shards: N}).

    Leases, nodes and pods are read with your own rights. Pending pods count for the shard whose holder decides on them,
    as far as their own fields say: not where a plugin of another package or a device class makes it that of shard 0.
    """
    with one_error():
        settings = user_settings(kubeconfig, context, os.environ)
        report = trio.run(_read, settings, lease, lease_namespace, frozenset(scheduler_names))
    if output == "table":
        _show(report)
    else:
        echo_data(report.as_fields, output)
    return ExitCode.OK


async def _read(settings: ConnectionSettings, lease: str, namespace: str, names: frozenset[str]) -> ShardReport:
    async with connect(settings, component="shards", qps=-1) as client:
        return await read_shards(client, namespace=namespace, lease=lease, scheduler_names=names, now=datetime.now(UTC))


def _show(report: ShardReport) -> None:
    console = answer_console()
    counts = plural(len(report.shards), "shard"), plural(len(report.replicas), "replica")
    title = f"{' of '.join(counts)}, by the leases of {report.lease}"
    shown = table(title, *_NUMBERS[:1], "holder", *_NUMBERS[1:], "nominated to it", right=_NUMBERS)
    for one in report.shards:
        shown.add_row(
            str(one.shard),
            one.holder or "nobody",
            "" if one.renewed_seconds is None else f"{one.renewed_seconds:g} s ago",
            str(one.nodes),
            str(one.pods),
            str(one.pending),
            ", ".join(one.nominated),
        )
    console.print(shown)
    if report.node_label:
        without = report.nodes_without_label
        others = f"; {plural(without, 'node')} without it by the name" if without else ""
        console.print(line(f"nodes are shared by the label {report.node_label}{others}"))
    for replica in report.replicas:
        held = [str(one.shard) for one in report.shards if one.holder == replica]
        console.print(line(f"{replica}: {'shards ' + ', '.join(held) if held else 'no shard, it waits'}"))
