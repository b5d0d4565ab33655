"""The outcome of a simulation: placed and pending pods, evictions, and the usage of nodes."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from attrs import field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.objects.pod_requests import ResourceAmounts, is_extended, pod_resources
from trio_sched.objects.resource.resource_claim import ResourceClaim
from trio_sched.objects.resource.resource_slice import ResourceSlice
from trio_sched.simulation.explanations import Explanation
from trio_sched.simulation.history import History, Timeline
from trio_sched.simulation.missing_pods import MissingPods, missing_pods
from trio_sched.simulation.node_usage import NodeGroup, NodeReport, TypicalPods, group_nodes, report_node
from trio_sched.simulation.provisioners import Assumption
from trio_sched.simulator.storage.object_store import ObjectStore

_WORKLOAD_LABELS: Final = ("app.kubernetes.io/name", "app", "k8s-app")
_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_node = msgspec.json.Decoder(Node).decode
_decode_slice = msgspec.json.Decoder(ResourceSlice).decode
_decode_claim = msgspec.json.Decoder(ResourceClaim).decode
_decode_group = msgspec.json.Decoder(PodGroup).decode
_SLICES: Final = "resourceslices.resource.k8s.io"
_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_NO_NOTES: Final[Mapping[str, str]] = {}


@frozen(kw_only=True)
class Placement:
    """One pod that has a node."""

    namespace: str
    pod: str
    workload: str
    node: str
    phase: str
    seconds_to_schedule: float | None
    """From its creation to its binding, in the cluster's time; None if it had its node at the beginning."""


@frozen(kw_only=True)
class Waiting:
    """Pods that have no node, all for the same reason."""

    reason: str
    message: str
    pods: tuple[str, ...]
    """``namespace/name``, in order."""
    note: str = ""
    """What is not in their status: that they fit a node now, and whose events did not move them."""


@frozen(kw_only=True)
class Eviction:
    """A pod that was preempted by one of a higher priority."""

    pod: str
    """``namespace/name``; a pod of that name may have been created since."""
    by: str
    """The preemptor, in the same form."""
    node: str
    at_seconds: float
    """After the beginning."""


@frozen(kw_only=True)
class TimeToSchedule:
    """From the creation of pods to their binding, in seconds of the cluster's time."""

    pods: int
    p50: float
    p99: float
    longest: float


@frozen(kw_only=True)
class Claims:
    """The claims for volumes of one class in one namespace."""

    namespace: str
    storage_class: str
    bound: int
    pending: int


@frozen(kw_only=True)
class Devices:
    """The devices of one driver in one pool of nodes."""

    driver: str
    pool: str
    """The pool of nodes; "-" for devices that belong to no single node."""
    count: int
    allocated: int
    tainted: int


@frozen(kw_only=True)
class Group:
    """A pod group."""

    namespace: str
    name: str
    min_count: int
    """0 if it is no gang."""
    placed: int
    pending: int
    message: str
    """Why it is not scheduled."""


@frozen(kw_only=True)
class Outcome:
    """The cluster at the end of a simulation."""

    placements: tuple[Placement, ...]
    waiting: tuple[Waiting, ...]
    """The most frequent reason first."""
    missing: tuple[MissingPods, ...]
    """Pods that could not be created."""
    evictions: tuple[Eviction, ...]
    """In the order in which they happened."""
    claims: tuple[Claims, ...]
    assumptions: tuple[Assumption, ...]
    """What need not be so in the cluster that was simulated."""
    devices: tuple[Devices, ...]
    groups: tuple[Group, ...]
    nodes: tuple[NodeReport, ...]
    pools: tuple[NodeGroup, ...]
    zones: tuple[NodeGroup, ...]
    time_to_schedule: TimeToSchedule | None
    """None if no pod was bound."""
    timeline: Timeline
    simulated_seconds: float
    """From the beginning to the last change of a pod."""
    settled: bool
    """False if the cluster was still changing at the end."""
    explanations: tuple[Explanation, ...] = ()
    """The explanations of the pods that were asked about."""
    resources: tuple[str, ...] = field(init=False)
    """What nodes offer besides pods: cpu, memory, then the extended resources."""

    @resources.default
    def _find_resources(self) -> tuple[str, ...]:
        extended = {name for node in self.nodes for name in node.usage.allocatable if is_extended(name)}
        return "cpu", "memory", *sorted(extended)

    @property
    def waiting_pods(self) -> int:
        """How many pods have no node."""
        return sum(len(group.pods) for group in self.waiting)

    @property
    def missing_pods(self) -> int:
        """How many pods could not be created."""
        return sum(one.pods for one in self.missing)


def is_decided(pod: Json, schedulers: Iterable[str]) -> bool:
    """Whether *pod* (as stored) is not pending: bound, unschedulable, terminating, or another scheduler's."""
    spec, status = pod["spec"], pod.get("status") or {}
    if spec.get("nodeName") or "deletionTimestamp" in pod["metadata"] or status.get("phase") in ("Succeeded", "Failed"):
        return True
    if spec.get("schedulerName", "default-scheduler") not in schedulers:
        return True
    return any(one.get("type") == "PodScheduled" for one in status.get("conditions") or ())


def read_outcome(
    store: ObjectStore,
    schedulers: Iterable[str],
    simulated_seconds: float,
    *,
    settled: bool,
    gated: Mapping[str, str],
    on_permit: Mapping[str, str],
    history: History,
    assumptions: Iterable[Assumption] = (),
    notes: Mapping[str, str] = _NO_NOTES,
) -> Outcome:
    """Read the pods and nodes of *store*.

    Args:
        store: the objects of the simulated API server.
        schedulers: the names of the schedulers that run; pods of others count as those of another scheduler.
        simulated_seconds: how long it took, in the cluster's time.
        settled: whether the cluster has stopped changing.
        gated: ``namespace/name`` of pods that wait before they are tried → why.
        on_permit: ``namespace/name`` of pods that wait on permit → for what.
        history: what has happened to the pods.
        assumptions: what need not be so in the cluster that was simulated.
        notes: ``namespace/name`` of pending pods → what to say besides their status.
    """
    ours = frozenset(schedulers)
    nodes = [_decode_node(stored.encoded(b"{")) for stored in store.collection("nodes").in_order()]
    placements: list[Placement] = []
    on_node: dict[str, list[ResourceAmounts]] = {}
    refused: dict[tuple[str, str, str], list[str]] = {}
    requests: dict[str, ResourceAmounts] = {}
    typical_of: list[ResourceAmounts] = []
    members: dict[tuple[str, str], Counter[bool]] = {}
    for stored in store.collection("pods").in_order():  # one after the other: decoded, all of them take much memory
        pod = _decode_pod(stored.encoded(b"{"))
        wanted = requests[pod.uid] = pod_resources(pod).requested
        if pod.node_name:
            placements.append(_placement(pod, history))
        if pod.is_terminal:
            continue
        typical_of.append(wanted)
        if pod.node_name:
            on_node.setdefault(pod.node_name, []).append(wanted)
        else:
            why = (*_why(pod, ours, gated, on_permit), notes.get(pod.key, ""))
            refused.setdefault(why, []).append(pod.key)
        if (group := pod.spec.scheduling_group) is not None:
            key = pod.namespace, group.pod_group_name or ""
            members.setdefault(key, Counter())[bool(pod.node_name)] += 1
    reports = tuple(report_node(node, on_node.get(node.name, ())) for node in nodes)
    typical = TypicalPods(typical_of)
    waiting = (
        Waiting(reason=reason, message=message, note=note, pods=tuple(keys))
        for (reason, message, note), keys in refused.items()
    )
    return Outcome(
        placements=tuple(placements),
        waiting=tuple(sorted(waiting, key=lambda group: -len(group.pods))),
        missing=tuple(missing_pods(store)),
        claims=tuple(_claims(store)),
        assumptions=tuple(assumptions),
        devices=tuple(_devices(store, {report.name: report.pool for report in reports})),
        groups=tuple(_groups(store, members)),
        evictions=tuple(
            Eviction(pod=one.victim, by=history.key_of(one.preemptor), node=one.node, at_seconds=one.seconds)
            for one in history.preemptions
        ),
        nodes=reports,
        pools=tuple(group_nodes(reports, lambda report: report.pool, typical)),
        zones=tuple(group_nodes(reports, lambda report: report.zone, typical)),
        time_to_schedule=_time_to_schedule(history),
        timeline=history.timeline(requests),
        simulated_seconds=simulated_seconds,
        settled=settled,
    )


def _time_to_schedule(history: History) -> TimeToSchedule | None:
    seconds = sorted(one.seconds_to_schedule for one in history.lives.values() if one.seconds_to_schedule is not None)
    if not seconds:
        return None
    # The nearest rank: a duration that a pod really had.
    p50, p99 = (seconds[math.ceil(share * len(seconds)) - 1] for share in (0.5, 0.99))
    return TimeToSchedule(pods=len(seconds), p50=p50, p99=p99, longest=seconds[-1])


def _claims(store: ObjectStore) -> Iterator[Claims]:
    counts: dict[tuple[str, str], Counter[bool]] = {}
    for stored in store.collection("persistentvolumeclaims").in_order():
        key = stored.fields["metadata"]["namespace"], stored.fields["spec"].get("storageClassName") or "-"
        is_bound = (stored.fields.get("status") or {}).get("phase") == "Bound"
        counts.setdefault(key, Counter())[is_bound] += 1
    for (namespace, storage_class), found in sorted(counts.items()):
        yield Claims(namespace=namespace, storage_class=storage_class, bound=found[True], pending=found[False])


def _devices(store: ObjectStore, pool_of: Mapping[str, str]) -> Iterator[Devices]:
    """Devices as the newest generation of each pool has them."""
    slices = [_decode_slice(one.encoded(b"{")).spec for one in store.collection(_SLICES).in_order()]
    newest: dict[tuple[str, str], int] = {}
    for spec in slices:
        key = spec.driver, spec.pool.name
        newest[key] = max(newest.get(key, 0), spec.pool.generation)
    allocated = Counter[tuple[str, str, str]]()
    for stored in store.collection(_CLAIMS).in_order():
        allocation = _decode_claim(stored.encoded(b"{")).status.allocation
        results = () if allocation is None else allocation.devices.results or ()
        allocated.update({(one.driver, one.pool, one.device): 1 for one in results if not one.admin_access})
    counts: dict[tuple[str, str], Counter[str]] = {}
    for spec in slices:
        if spec.pool.generation != newest[spec.driver, spec.pool.name]:
            continue
        for device in spec.devices or ():
            node = spec.node_name or device.node_name or ""
            count = counts.setdefault((spec.driver, pool_of.get(node, "-")), Counter())
            is_allocated = (spec.driver, spec.pool.name, device.name) in allocated
            count.update({"all": 1, "allocated": is_allocated, "tainted": bool(device.taints)})
    for (driver, pool), count in sorted(counts.items()):
        yield Devices(
            driver=driver, pool=pool, count=count["all"], allocated=count["allocated"], tainted=count["tainted"]
        )


def _groups(store: ObjectStore, members: Mapping[tuple[str, str], Counter[bool]]) -> Iterator[Group]:
    """The pod groups; *members* counts the pods of each, with a node and without."""
    groups = store.collection("podgroups.scheduling.k8s.io")
    if not groups.objects:
        return
    explained: dict[str, str] = {}
    for stored in store.collection("events").in_order():
        about = stored.fields.get("involvedObject") or {}
        if about.get("kind") == "PodGroup" and stored.fields.get("reason") == "FailedScheduling":
            explained[about.get("uid") or ""] = stored.fields.get("message") or ""
    for stored in groups.in_order():
        group_ = _decode_group(stored.encoded(b"{"))
        count = members.get((group_.namespace, group_.name), Counter())
        conditions = group_.status.conditions or ()
        refused = [one.message for one in conditions if one.type == "PodGroupScheduled" and one.status == "False"]
        yield Group(
            namespace=group_.namespace,
            name=group_.name,
            min_count=group_.min_count or 0,
            placed=count[True],
            pending=count[False],
            message=explained.get(group_.metadata.uid, refused[0]) if refused and count[False] else "",
        )


def _placement(pod: Pod, history: History) -> Placement:
    life = history.lives.get(pod.uid)
    return Placement(
        namespace=pod.namespace,
        pod=pod.name,
        workload=_workload(pod),
        node=pod.node_name,
        phase=pod.status.phase,
        seconds_to_schedule=None if life is None else life.seconds_to_schedule,
    )


def _workload(pod: Pod) -> str:
    """The workload of *pod*: its application, its controller, or the pod itself."""
    labels = pod.labels
    for label in _WORKLOAD_LABELS:
        if label in labels:
            return labels[label]
    owners = pod.metadata.owner_references or ()
    return next((owner.name for owner in owners if owner.controller), pod.name)


def _why(pod: Pod, ours: frozenset[str], gated: Mapping[str, str], on_permit: Mapping[str, str]) -> tuple[str, str]:
    if pod.scheduler_name not in ours:
        return "OtherScheduler", f"waits for the scheduler {pod.scheduler_name!r}, which does not run here"
    if pod.key in on_permit:  # the condition, if there is one, is that of an attempt before
        return "WaitingOnPermit", on_permit[pod.key]
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled":
            return condition.reason, condition.message
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating", "is being deleted"
    if pod.key in gated:
        return "Gated", gated[pod.key]
    return "Undecided", "has not been tried yet"
