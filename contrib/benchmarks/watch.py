"""What a watch event costs: from the bytes of a line to cache and queue."""

import json
import time
from collections.abc import Iterator
from random import Random
from typing import cast

import trio

from contrib.benchmarks.engine import default_profile, scheduler
from contrib.benchmarks.report import Figure
from contrib.benchmarks.workload import pod
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Codec
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.watch import Reflector

EVENTS = 20_000
BATCH = 50


def run() -> Iterator[Figure]:
    for what, lines in (("a new pod", _added()), ("a pod bound, then running", _bound_and_running())):
        size = len(lines) // EVENTS
        yield Figure(
            "watch", f"{what}, {size:,} bytes", "line → cache and queue", _measure(lines), "µs CPU/event", 60.0
        )


def _measure(lines: bytes) -> float:
    made = scheduler(default_profile(), 1_000)
    delivery = Delivery(
        event_handlers=EventHandlers(scheduler=made, reject_waiting=lambda _uid: False),
        object_waits=ObjectWaits(),
        wake=lambda: None,
        metrics=MetricRecorder(),
    )
    reflector = Reflector(cast("KubeClient", None), POD_KIND, delivery.pods_changed, Random(1), "", lambda *_: None)
    reflector._known = {}
    codec = Codec(POD_KIND)
    pieces = lines.splitlines(keepends=True)
    batches = [b"".join(pieces[i : i + BATCH]) for i in range(0, len(pieces), BATCH)]

    async def feed() -> float:
        began = time.process_time()
        for batch in batches:
            reflector._apply(codec.events(batch))
        return (time.process_time() - began) / EVENTS * 1e6

    return trio.run(feed)


def _event(type_: str, i: int, **changes: object) -> bytes:
    one = pod(i, i % 100)
    one["metadata"]["resourceVersion"] = str(1_000_000 + i)
    managed = {
        "f:metadata": {"f:labels": {f"f:label-{n}": {} for n in range(40)}},
        "f:spec": {f"f:field-{n}": {} for n in range(60)},
    }
    one["metadata"]["managedFields"] = [
        {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": managed}
    ]
    one["spec"].update(changes.get("spec", {}))
    one["status"].update(changes.get("status", {}))
    return json.dumps({"type": type_, "object": one}, separators=(",", ":")).encode() + b"\n"


def _added() -> bytes:
    return b"".join(_event("ADDED", i) for i in range(EVENTS))


def _bound_and_running() -> bytes:
    lines = []
    for i in range(EVENTS // 2):
        spec = {"nodeName": f"node-{i % 1000:05}"}
        running = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True}]}
        lines += [_event("ADDED", i, spec=spec), _event("MODIFIED", i, spec=spec, status=running)]
    return b"".join(lines)
