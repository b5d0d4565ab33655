"""What must hold after every fault, however it went."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from contrib.faults.load import CLAIM_PATH
from trio_sched.kube_client.errors import KubeClientError
from trio_sched.objects.amounts.quantity import parse_nano

if TYPE_CHECKING:
    from contrib.faults.cluster import Cluster

SETTLED_SECONDS = 40.0
"""Pods whose binds failed in the fault are tried again after their backoff; some binds are looked up for a while."""
COMPARED_SECONDS = 30.0
POLL_SECONDS = 0.25


async def problems_of(here: Cluster) -> list[str]:
    """What does not hold; nothing where all is well."""
    found = await _waited(here)
    found += [problem async for problem in _of_cluster(here)]
    if here.is_ours and here.has_endpoints:
        found += [problem async for problem in _of_process(here)]
    return found


async def _waited(here: Cluster) -> list[str]:
    """Pods that fit and are not bound, after time enough."""
    pending: list[str] = []
    with trio.move_on_after(SETTLED_SECONDS):
        while True:
            try:
                pods = await here.list_pods()
                pending = [name for name, pod in pods.items() if name in here.load.fitting and not _node_of(pod)]
                if not pending:
                    return []
            except KubeClientError:
                pass
            await trio.sleep(POLL_SECONDS)
    return [f"not bound although it fits: {_some(pending)}"]


async def _of_cluster(here: Cluster) -> AsyncIterator[str]:
    pods = await here.list_pods()
    used: defaultdict[str, int] = defaultdict(int)
    for pod in pods.values():
        for container in pod["spec"]["containers"]:
            used[_node_of(pod)] += parse_nano(container["resources"]["requests"]["cpu"])
    nodes = (await here.call(b"GET", b"/api/v1/nodes"))["items"]
    for node in nodes:
        name = node["metadata"]["name"]
        if used[name] > parse_nano(node["status"]["allocatable"]["cpu"]):
            yield f"node {name} is overcommitted"
    wrong = [name for name in here.load.too_large if name in pods and _node_of(pods[name])]
    if wrong:
        yield f"bound although it fits nowhere: {_some(wrong)}"
    silent = [name for name in here.load.too_large if name in pods and not _reason_of(pods[name])]
    if silent:
        yield f"pending without a reason in its status: {_some(silent)}"
    nominated = [name for name, pod in pods.items() if not _node_of(pod) and pod["status"].get("nominatedNodeName")]
    if nominated:
        yield f"still nominated: {_some(nominated)}"
    claims = (await here.call(b"GET", CLAIM_PATH.encode()))["items"]
    devices = Counter(device for claim in claims for device in _devices_of(claim))
    twice = [str(device) for device, count in devices.items() if count > 1]
    if twice:
        yield f"allocated more than once: {_some(twice)}"
    bound_to: defaultdict[str, set[str]] = defaultdict(set)
    events = await here.call(b"GET", b"/apis/events.k8s.io/v1/namespaces/default/events")
    for event in events["items"]:
        if event["reason"] == "Scheduled":
            bound_to[event["regarding"]["uid"]].add(event["note"])
    moved = [next(iter(notes)) for notes in bound_to.values() if len(notes) > 1]
    if moved:
        yield f"said to be bound to more than one node: {_some(moved)}"


async def _of_process(here: Cluster) -> AsyncIterator[str]:
    """The cache equals a fresh list; nothing is under way; every pending pod has a reason or a time."""
    assert here.scheduler.process is not None
    begin = here.scheduler.log_file.stat().st_size
    here.scheduler.process.send_signal(signal.SIGUSR2)
    lines = b""
    with trio.move_on_after(COMPARED_SECONDS):
        while b"Dump of scheduling queue" not in lines:
            await trio.sleep(POLL_SECONDS)
            lines = here.scheduler.log_file.read_bytes()[begin:]
    if b"Dump of scheduling queue" not in lines:
        yield "the cache was not compared"
    for line in lines.splitlines():
        if b"Cache mismatch" in line or b"cannot be compared" in line:
            yield line.decode(errors="replace")[:200]
    in_flight: dict[str, Any] = {}
    with trio.move_on_after(COMPARED_SECONDS):  # the load goes on
        while True:
            in_flight = await _page(here, "in-flight")
            cache = await _page(here, "cache")
            if not _is_busy(in_flight, cache):
                break
            await trio.sleep(POLL_SECONDS)
        else:
            yield f"still under way: {in_flight}"
    queue = await _page(here, "queue")
    for part in ("unschedulable", "backoff", "errorBackoff"):
        for info in queue[part]["items"]:
            if not info.get("rejectedBy") and not info.get("gatedBy") and "backoffSecondsLeft" not in info:
                yield f"pending without a reason: {info['pod']}"


def _is_busy(in_flight: dict[str, Any], cache: dict[str, Any]) -> bool:
    under_way = ("bindsUnderWay", "statusPatchesUnderWay", "preemptionsUnderWay")
    return bool(
        in_flight["pods"]["count"] or cache["assumedPods"]["count"] or any(in_flight[name] for name in under_way)
    )


async def _page(here: Cluster, name: str) -> Any:
    return msgspec.json.decode(await here.page(f"/debug/scheduler/{name}"))


def _node_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _reason_of(pod: dict[str, Any]) -> str:
    conditions = pod["status"].get("conditions", ())
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def _devices_of(claim: dict[str, Any]) -> list[tuple[str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [(one["pool"], one["device"]) for one in (allocation.get("devices") or {}).get("results", ())]


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
