"""A daemon in the process of the test, with plugins that are not installed, against an API server on a port."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

import trio
from attrs import evolve
from daemon_clients import open_unlimited
from real_servers import Server

from contrib.control_plane.servers import SCHEDULER_TOKEN
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.permissions import cluster_rules
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.testing.cluster_settings import cluster_settings


@asynccontextmanager
async def daemon_with(
    server: Server,
    plugins: Sequence[Any],
    config: str | None = None,
    gates: Mapping[str, bool] | None = None,
    identity: str = "me",
) -> AsyncIterator[Assembly]:
    """Run a daemon with *plugins*, which has the permissions that are computed from what these declare."""
    settings = evolve(
        cluster_settings(config, FeatureGates.emulating("", gates or {}), plugins, False), identity=identity
    )
    tls = TlsSettings(ca_file=str(server.files.server.authority))
    connection = ConnectionSettings(server=server.url, tls=tls, token=SCHEDULER_TOKEN)
    async with open_unlimited(settings.config, connection) as clients, trio.open_nursery() as nursery:
        assembly = assemble(settings, clients, random=Random(0), wall_clock=lambda: datetime.now(UTC))
        await _grant(server, [rule.as_manifest() for rule in cluster_rules(assembly.loaded)])
        stop = trio.Event()
        await nursery.start(partial(run_daemon, assembly, stop=stop))
        yield assembly
        stop.set()


async def _grant(server: Server, rules: list[dict[str, Any]]) -> None:
    group = "/apis/rbac.authorization.k8s.io/v1"
    name = {"metadata": {"name": "plugins"}}
    if (await server.admin.get(f"{group}/clusterroles/plugins")).status_code == 200:  # of a daemon that ran before
        await server.request("PUT", f"{group}/clusterroles/plugins", {**name, "rules": rules})
        return
    await server.request("POST", f"{group}/clusterroles", {**name, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "plugins"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"}
    await server.request("POST", f"{group}/clusterrolebindings", {**name, "roleRef": role, "subjects": [subject]})
