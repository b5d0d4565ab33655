"""The series about requests to the API server and about the lease."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trio_sched.daemon.metrics.families.client_families import CLIENT_FAMILIES
from trio_sched.daemon.metrics.families.exposed import Series
from trio_sched.daemon.metrics.families.families import by_name
from trio_sched.daemon.metrics.options import add_values
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.metrics.requests import RequestLog
from trio_sched.daemon.metrics.series.scheduler_series import Collected
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.watch import Reflector

FAMILIES: Final = by_name(CLIENT_FAMILIES)
ELECTION: Final = "kube-scheduler"
"""The name of the election in metrics, whatever the lease is called."""
INFORMER: Final = "kube-scheduler"
"""The name of the informers in metrics."""
NO_RESPONSE: Final = "<error>"


def requests(logs: Iterable[RequestLog]) -> Collected:
    """Requests by host and method."""
    totals: Counter[tuple[str, ...]] = Counter()
    retries: Counter[tuple[str, ...]] = Counter()
    merged: dict[str, dict[tuple[str, ...], float | Histogram]] = {}
    for log in logs:
        log.fold()
        for method, counted in log.methods.items():
            verb = method.decode("ascii", "replace")
            for status, count in counted.statuses.items():
                totals[str(status or NO_RESPONSE), log.host, verb] += count
            for status, count in counted.retried.items():
                retries[str(status or NO_RESPONSE), log.host, verb] += count
            for family, histogram in (
                ("rest_client_request_duration_seconds", counted.seconds),
                ("rest_client_rate_limiter_duration_seconds", counted.waited),
                ("rest_client_request_size_bytes", counted.sent_bytes),
                ("rest_client_response_size_bytes", counted.received_bytes),
            ):
                of_family = merged.setdefault(family, {})
                of_family[log.host, verb] = add_values(of_family.get((log.host, verb)), histogram)
    yield "rest_client_requests_total", [(key, float(count)) for key, count in totals.items()]
    yield "rest_client_request_retries_total", [(key, float(count)) for key, count in retries.items()]
    for family, by_labels in merged.items():
        yield family, list(by_labels.items())
    yield "rest_client_exec_plugin_ttl_seconds", [((), math.inf)]
    rotations = Histogram(FAMILIES["rest_client_exec_plugin_certificate_rotation_age"].buckets)
    yield "rest_client_exec_plugin_certificate_rotation_age", [((), rotations)]
    yield "rest_client_transport_cert_rotation_gc_calls_total", [((), 0.0)]


def informers(reflectors: Iterable[Reflector[Any]], recorder: MetricRecorder) -> Collected:
    """The watches, as kube-scheduler shows its informers."""
    versions: list[Series] = []
    queued: list[Series] = []
    for reflector in reflectors:
        kind, version = reflector.kind, reflector.resource_version[-15:]
        labels = kind.group, INFORMER, kind.plural, kind.version
        queued.append((labels, 0.0))
        if version.isdecimal():
            versions.append((labels, float(version)))
    yield "informer_queued_items", queued
    yield "informer_store_resource_version", versions
    processing = recorder.informer_processing.by_key.items()
    yield (
        "informer_processing_latency_seconds",
        [((group, INFORMER, plural, version), one) for (group, version, plural), one in processing],
    )


def clients(clients: Mapping[str, KubeClient]) -> Collected:
    """The connections to the API server."""
    pools = len({id(client.pool) for client in clients.values() if client.pool is not None})
    yield "rest_client_transport_cache_entries", [((), float(pools))]
    yield "rest_client_transport_create_calls_total", [(("miss",), float(pools))] if pools else []
    in_flight: list[Series] = [((name,), float(client.requests_in_flight)) for name, client in clients.items()]
    yield "trio_sched_requests_in_flight", in_flight


def election(recorder: MetricRecorder) -> Collected:
    """The lease."""
    leads, slow = recorder.leads, recorder.slow_renewals
    yield "leader_election_master_status", [] if leads is None else [((ELECTION,), float(leads))]
    yield "leader_election_slowpath_total", [((ELECTION,), float(slow))] if slow else []
