"""The families of requests to the API server, of leader election, and of work queues."""

from __future__ import annotations

from typing import Final

from trio_sched.daemon.metrics.families.families import BETA, Family, Type
from trio_sched.daemon.metrics.recorder import INFORMER_BUCKETS
from trio_sched.daemon.metrics.requests import LATENCY_BUCKETS, SIZE_BUCKETS
from trio_sched.daemon.writes.job_times import QUEUE_BUCKETS

_INFORMER_LABELS: Final = ("name", "group", "version", "resource")
_SINCE_INFORMERS: Final = (1, 37)

CLIENT_FAMILIES: Final = (
    Family(
        "informer_processing_latency_seconds",
        Type.HISTOGRAM,
        "Time taken to process events after popping from the queue.",
        _INFORMER_LABELS,
        buckets=INFORMER_BUCKETS,
        since=_SINCE_INFORMERS,
        note="All events that were read from the connection at once are one value.",
    ),
    Family(
        "informer_queued_items",
        Type.GAUGE,
        "Number of items currently queued in the FIFO.",
        _INFORMER_LABELS,
        since=_SINCE_INFORMERS,
        note="Always 0: events are processed as they are read.",
    ),
    Family(
        "informer_store_resource_version",
        Type.GAUGE,
        "The 15 least significant digits of the resource version of the store.",
        _INFORMER_LABELS,
        since=_SINCE_INFORMERS,
    ),
    Family(
        "leader_election_master_status",
        Type.GAUGE,
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
        ("name",),
    ),
    Family(
        "rest_client_exec_plugin_certificate_rotation_age",
        Type.HISTOGRAM,
        "Histogram of the number of seconds the last auth exec plugin client certificate lived before being rotated. If auth exec plugin client certificates are unused, histogram will contain no data.",
        buckets=(
            600.0,
            1800.0,
            3600.0,
            14400.0,
            86400.0,
            604800.0,
            2592000.0,
            7776000.0,
            15552000.0,
            31104000.0,
            124416000.0,
        ),
        note="Never has a value.",
    ),
    Family(
        "rest_client_exec_plugin_ttl_seconds",
        Type.GAUGE,
        "Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the auth exec plugin. The value is in seconds until certificate expiry (negative if already expired). If auth exec plugins are unused or manage no TLS certificates, the value will be +INF.",
        note="Always +Inf.",
    ),
    Family(
        "rest_client_rate_limiter_duration_seconds",
        Type.HISTOGRAM,
        "Client side rate limiter latency in seconds. Broken down by verb, and host.",
        ("host", "verb"),
        buckets=LATENCY_BUCKETS,
    ),
    Family(
        "rest_client_request_duration_seconds",
        Type.HISTOGRAM,
        "Request latency in seconds. Broken down by verb, and host.",
        ("host", "verb"),
        buckets=LATENCY_BUCKETS,
    ),
    Family(
        "rest_client_request_size_bytes",
        Type.HISTOGRAM,
        "Request size in bytes. Broken down by verb and host.",
        ("host", "verb"),
        buckets=SIZE_BUCKETS,
    ),
    Family(
        "rest_client_requests_total",
        Type.COUNTER,
        "Number of HTTP requests, partitioned by status code, method, and host.",
        ("code", "host", "method"),
    ),
    Family(
        "rest_client_response_size_bytes",
        Type.HISTOGRAM,
        "Response size in bytes. Broken down by verb and host.",
        ("host", "verb"),
        buckets=SIZE_BUCKETS,
    ),
    Family(
        "rest_client_transport_cache_entries",
        Type.GAUGE,
        "Number of transport entries in the internal cache.",
        note="The pools of connections.",
    ),
    Family(
        "rest_client_transport_cert_rotation_gc_calls_total",
        Type.COUNTER,
        "Number of times a cert rotation goroutine cancel func is called via GC cleanup of the associated transport",
        note="Always 0.",
    ),
    Family(
        "rest_client_transport_create_calls_total",
        Type.COUNTER,
        "Number of calls to get a new transport, partitioned by the result of the operation hit: obtained from the cache, miss: created and added to the cache, miss-gc: recreated and added back to the cache after being garbage collected, uncacheable: created and not cached",
        ("result",),
        note="Each pool counts as a miss.",
    ),
    Family(
        "workqueue_adds_total", Type.COUNTER, "Total number of adds handled by workqueue", ("name",), stability=BETA
    ),
    Family(
        "workqueue_depth",
        Type.GAUGE,
        "Current depth of workqueue",
        ("name",),
        stability=BETA,
        note="name is, here and in the other families, a pool of tasks: binding, pod_status_patch, preemption (the deletion of victims), plugin_jobs.",
    ),
    Family(
        "workqueue_longest_running_processor_seconds",
        Type.GAUGE,
        "How many seconds has the longest running processor for workqueue been running.",
        ("name",),
        stability=BETA,
    ),
    Family(
        "workqueue_queue_duration_seconds",
        Type.HISTOGRAM,
        "How long in seconds an item stays in workqueue before being requested.",
        ("name",),
        stability=BETA,
        buckets=QUEUE_BUCKETS,
    ),
    Family(
        "workqueue_retries_total",
        Type.COUNTER,
        "Total number of retries handled by workqueue",
        ("name",),
        stability=BETA,
        note="Always 0: jobs deal with their failures themselves.",
    ),
    Family(
        "workqueue_unfinished_work_seconds",
        Type.GAUGE,
        "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
        ("name",),
        stability=BETA,
    ),
    Family(
        "workqueue_work_duration_seconds",
        Type.HISTOGRAM,
        "How long in seconds processing an item from workqueue takes.",
        ("name",),
        stability=BETA,
        buckets=QUEUE_BUCKETS,
    ),
    Family(
        "leader_election_slowpath_total",
        Type.COUNTER,
        "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.",
        ("name",),
    ),
    Family(
        "rest_client_request_retries_total",
        Type.COUNTER,
        "Number of request retries, partitioned by status code, verb, and host.",
        ("code", "verb", "host"),
    ),
    Family(
        "rest_client_dns_resolution_duration_seconds",
        Type.HISTOGRAM,
        "DNS resolver latency in seconds. Broken down by host.",
        ("host",),
        buckets=LATENCY_BUCKETS[:-1],
        note="Never has a value: a connection is opened in one step.",
    ),
    Family(
        "rest_client_exec_plugin_call_total",
        Type.COUNTER,
        "Number of calls to an exec plugin, partitioned by the type of event encountered (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and an optional exit code. The exit code will be set to 0 if and only if the plugin call was successful.",
        ("code", "call_status"),
        note="Never has a value.",
    ),
)


def has_informer_metrics(version: tuple[int, int]) -> bool:
    """Whether the emulated *version* shows how the events of watches are processed."""
    return version >= _SINCE_INFORMERS
