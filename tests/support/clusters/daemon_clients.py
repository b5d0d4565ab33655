"""Connections for daemons in tests."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from attrs import evolve

from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.clients import Clients, WritePermit, open_clients
from trio_sched.daemon.metrics.requests import RequestLogs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.settings import ConnectionSettings


def one_for_all(client: KubeClient, request_logs: RequestLogs | None = None) -> Clients:
    """*client* for everything, of a daemon that elects no leader; *request_logs* count its requests."""
    permit, logs = WritePermit("kube-system/kube-scheduler"), request_logs or RequestLogs()
    return Clients(main=client, events=client, leases=client, write_permit=permit, request_logs=logs)


def open_unlimited(
    config: SchedulerConfig, connection: ConnectionSettings, **more: Any
) -> AbstractAsyncContextManager[Clients]:
    """As *config* says, but without a limit of requests per second."""
    limits = evolve(config.client_connection, qps=-1.0)
    return open_clients(evolve(config, client_connection=limits), connection, **more)
