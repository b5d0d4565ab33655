"""Simulated kubelets: bound pods start, run, complete, and are removed after their deletion."""

import heapq
import logging
import math
from collections.abc import Callable

import trio
from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.go.text import shortened
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.endpoints.subresources.pod_subresources import with_conditions
from trio_sched.simulator.kubelets.claim_consumers import claim_names, is_reserved_for, pods_of
from trio_sched.simulator.kubelets.pod_states import condition_of, is_terminating, is_unreachable
from trio_sched.simulator.kubelets.resizes import Resizes
from trio_sched.simulator.registry.lifecycle import DeleteOptions, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

log = logging.getLogger(__name__)

RUN_SECONDS = "trio-sched.dev/run-seconds"
"""Annotation: how long the pod runs before it completes; without it, it runs for ever."""

CLAIMS = "resourceclaims.resource.k8s.io"

EXIT_CODE = "trio-sched.dev/exit-code"
"""Annotation: with which code its containers end; anything but 0 makes the pod Failed."""

_STARTED = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
_UNREADY = ("ContainersReady", "Ready")
_STEPS = ("start", "end", "stop", "resize", "report")
_TERMINATED = 143
"""The exit code of a process that is told to end by SIGTERM."""


@frozen(kw_only=True)
class KubeletPace:
    """How fast kubelets work, in seconds.

    Attributes:
        start_seconds: from binding to running.
        start_jitter_seconds: up to this much more, drawn for every pod.
        stop_seconds: from the deletion of a pod to its end, never longer than its grace period.
    """

    start_seconds: float = 1.0
    start_jitter_seconds: float = 0.0
    stop_seconds: float = 1.0


@define(eq=False)
class _Kubelets:
    """All kubelets of a cluster: a queue of the next step of every pod, by its time."""

    server: ApiServer
    pace: KubeletPace
    _due: list[tuple[float, int, str, str, str, Callable[[StoredObject], None]]] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)
    _planned: set[tuple[str, str]] = field(factory=set, init=False)
    _pods_of_missing_nodes: dict[str, set[str]] = field(factory=dict, init=False)
    _unreachable: set[str] = field(factory=set, init=False)
    """The nodes whose kubelets do nothing; one that is deleted stays here until it is created again."""
    _held: dict[str, list[tuple[str, str, str]]] = field(factory=dict, init=False)
    """Such a node → uids and keys of pods, with the steps that were due."""
    _addresses: int = field(default=0, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)
    _pods: dict[str, StoredObject] = field(init=False)
    _nodes: dict[str, StoredObject] = field(init=False)
    _resizes: Resizes = field(init=False)

    def __attrs_post_init__(self) -> None:
        store = self.server.store
        self._pods, self._nodes = store.collection("pods").objects, store.collection("nodes").objects
        self._resizes = Resizes(self.server, self._plan_resize)

    def on_pod(self, change: Change) -> None:
        """Plan the next step of a pod that has changed."""
        if change.type == "DELETED":
            uid = change.current.fields["metadata"]["uid"]
            self._planned -= {(uid, step) for step in _STEPS}
        else:
            self.plan(change.current)
        self._resizes.on_pod(change)

    def on_node(self, change: Change) -> None:
        """Plan the pods that were bound to a node before it was created, and those that wait for it or for room."""
        self._resizes.on_node(change)
        name = change.current.key
        if change.type != "DELETED":
            self.note_node(change.current)
        if change.type == "ADDED":
            for key in self._pods_of_missing_nodes.pop(name, ()):
                pod = self._pods.get(key)
                if pod is not None:
                    self.plan(pod)

    def note_node(self, node: StoredObject) -> None:
        """Stop the kubelet of a node that is unreachable; let it go on when the node is reachable again."""
        if is_unreachable(node.fields):
            self._unreachable.add(node.key)
        elif node.key in self._unreachable:
            self._unreachable.remove(node.key)
            self._go_on(node.key)

    def _go_on(self, node: str) -> None:
        """Do what was held: the kubelet learns only now of new and deleted pods, while others have run on."""
        for uid, key, step in self._held.pop(node, ()):
            self._planned.discard((uid, step))
            pod = self._pods.get(key)
            if pod is None or pod.fields["metadata"]["uid"] != uid:
                continue
            if step == "end":
                self._schedule(pod, step, 0.0, self._end)
            elif step == "resize":
                self._plan_resize(pod)
            else:
                self.plan(pod)
        for pod in self._pods.values():
            if pod.fields["spec"].get("nodeName") == node:
                self._schedule(pod, "report", 0.0, self._report)

    def plan(self, pod: StoredObject) -> None:
        """Plan the next step of *pod* if its node exists."""
        fields = pod.fields
        node = fields["spec"].get("nodeName")
        if not node:
            return
        if node not in self._nodes:
            self._pods_of_missing_nodes.setdefault(node, set()).add(pod.key)
            return
        metadata, phase = fields["metadata"], (fields.get("status") or {}).get("phase")
        if "deletionTimestamp" in metadata:
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            self._schedule(pod, "stop", min(self.pace.stop_seconds, grace), self._stop)
        elif phase == "Pending":
            if fields["spec"].get("resourceClaims") and not self._has_its_claims(pod):
                return  # a change of the claims plans it again
            wait = self.pace.start_seconds + self.server.state.rng.random() * self.pace.start_jitter_seconds
            self._schedule(pod, "start", wait, self._start)
        elif phase == "Running":
            lasts = _annotated_number(pod, RUN_SECONDS)
            if lasts is not None:
                self._schedule(pod, "end", lasts, self._end)

    def on_claim(self, change: Change) -> None:
        """Plan the pods for which a claim is reserved now."""
        before = {} if change.previous is None else change.previous.fields.get("status") or {}
        known = before.get("reservedFor") or () if "allocation" in before else ()
        for consumer in (change.current.fields.get("status") or {}).get("reservedFor") or ():
            if consumer not in known:
                for pod in pods_of(self.server.store, change.current, consumer):
                    self.plan(pod)

    def _has_its_claims(self, pod: StoredObject) -> bool:
        """Whether all resource claims of the pod are allocated and reserved for it."""
        namespace = pod.fields["metadata"]["namespace"]
        for name in claim_names(pod):
            if name is None:
                continue
            claim = self.server.store.get(CLAIMS, f"{namespace}/{name}")
            if claim is None or "allocation" not in (claim.fields.get("status") or {}):
                return False
            if not is_reserved_for(claim, pod):
                return False
        return True

    def _schedule(self, pod: StoredObject, step: str, wait: float, act: Callable[[StoredObject], None]) -> None:
        uid = pod.fields["metadata"]["uid"]
        if (uid, step) in self._planned:
            return
        self._planned.add((uid, step))
        self._count += 1
        heapq.heappush(self._due, (trio.current_time() + wait, self._count, uid, pod.key, step, act))
        self._wake.set()

    async def work(self) -> None:
        """Run the steps when they are due; never returns."""
        while True:
            self._wake = trio.Event()
            now = trio.current_time()
            while self._due and self._due[0][0] <= now:
                _, _, uid, key, step, act = heapq.heappop(self._due)
                pod = self._pods.get(key)
                if pod is None or pod.fields["metadata"]["uid"] != uid:
                    continue
                node = pod.fields["spec"]["nodeName"]
                if node in self._unreachable:
                    self._held.setdefault(node, []).append((uid, key, step))
                else:
                    act(pod)
            with trio.move_on_at(self._due[0][0] if self._due else float("inf")):
                await self._wake.wait()

    def _start(self, pod: StoredObject) -> None:
        fields = pod.fields
        if "deletionTimestamp" in fields["metadata"]:
            return
        spec, moment = fields["spec"], self.server.state.timestamp()
        status = dict(fields.get("status") or {})
        conditions = with_conditions(status.get("conditions"), moment, _STARTED, "True")
        address = self._next_address()
        state = {"running": {"startedAt": moment}}
        status |= {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": self._host_address(spec["nodeName"]),
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": moment,
            "containerStatuses": [_container_status(one, state, ready=True) for one in spec.get("containers") or ()],
        }
        if spec.get("initContainers"):
            done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": moment, "finishedAt": moment}}
            status["initContainerStatuses"] = [
                _container_status(one, done, ready=True) for one in spec["initContainers"]
            ]
        self._write(pod, status)

    def _end(self, pod: StoredObject) -> None:
        if pod.fields["status"].get("phase") == "Running":
            self._write(pod, self._ended(pod, int(_annotated_number(pod, EXIT_CODE) or 0)))

    def _ended(self, pod: StoredObject, code: int) -> Json:
        """The status of a pod whose containers have ended with an exit code."""
        fields, moment = pod.fields, self.server.state.timestamp()
        status = dict(fields.get("status") or {})
        reason = "PodCompleted" if code == 0 else "PodFailed"
        conditions = with_conditions(status.get("conditions"), moment, _UNREADY, "False", reason=reason)
        ended = {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "startedAt": status.get("startTime"),
                "finishedAt": moment,
            }
        }
        containers = fields["spec"].get("containers") or ()
        return {
            **status,
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": conditions,
            "containerStatuses": [_container_status(one, ended, ready=False) for one in containers],
        }

    def _plan_resize(self, pod: StoredObject) -> None:
        self._schedule(pod, "resize", self.pace.start_seconds, self._resize)

    def _resize(self, pod: StoredObject) -> None:
        self._planned.discard((pod.fields["metadata"]["uid"], "resize"))  # there may be others
        self._resizes.act(pod)

    def _report(self, pod: StoredObject) -> None:
        """Say again that a pod is ready: the node controller has said otherwise while the node was unreachable."""
        self._planned.discard((pod.fields["metadata"]["uid"], "report"))  # the node may be lost again
        fields = pod.fields
        status, running = fields.get("status") or {}, condition_of(fields, "ContainersReady") or {}
        ready = condition_of(fields, "Ready")
        if status.get("phase") != "Running" or is_terminating(fields) or running.get("status") != "True":
            return
        if ready is not None and ready.get("status") == "False" and not ready.get("reason"):
            true = {**ready, "status": "True", "lastTransitionTime": running.get("lastTransitionTime")}
            self._write(pod, {**status, "conditions": [true if c is ready else c for c in status["conditions"]]})

    def _stop(self, pod: StoredObject) -> None:
        pods = self.server.state.types.core("pods")
        if pod.fields["metadata"].get("deletionGracePeriodSeconds"):
            if pod.fields["metadata"].get("finalizers"):  # who has to see how it ended
                self._write(pod, self._ended(pod, _TERMINATED))
                pod = self._pods[pod.key]
            delete(self.server.state, pods, pod, DeleteOptions(grace_seconds=0))

    def _write(self, pod: StoredObject, status: Json) -> None:
        write_fields(self.server.state, self.server.state.types.core("pods"), pod, status=status)

    def _next_address(self) -> str:
        self._addresses += 1
        number = self._addresses + 1
        return f"10.{128 + (number >> 16) % 127}.{(number >> 8) & 255}.{number & 255}"

    def _host_address(self, node: str) -> str:
        stored = self._nodes.get(node)
        listed = ((stored.fields.get("status") or {}).get("addresses") if stored else None) or ()
        for one in listed:
            if one.get("type") == "InternalIP":
                return str(one["address"])
        return "192.0.2.1"


def annotated_number(fields: Json, name: str) -> float | None:
    """The finite number in the annotation *name* of a pod; None if there is none, or it is no number."""
    text = (fields["metadata"].get("annotations") or {}).get(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _annotated_number(pod: StoredObject, name: str) -> float | None:
    """The number in an annotation of *pod*; what is no number is logged."""
    number = annotated_number(pod.fields, name)
    text = (pod.fields["metadata"].get("annotations") or {}).get(name)
    if number is None and text is not None:
        log.warning("pod %s: annotation %s is no number and is ignored: %r", pod.key, name, shortened(text))
    return number


def _container_status(container: Json, state: Json, *, ready: bool) -> Json:
    image = container.get("image") or ""
    return {
        "name": container.get("name") or "",
        "image": image,
        "imageID": f"simulated://{image}",
        "containerID": "",
        "lastState": {},
        "ready": ready,
        "restartCount": 0,
        "started": ready,
        "state": state,
    }


async def run_kubelets(
    server: ApiServer,
    pace: KubeletPace | None = None,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the kubelet of every node; never returns.

    Only pods on nodes that exist are started, and only when their resource claims are reserved for them. On a node
    whose condition ``Ready`` is ``Unknown`` nothing is done until it is ``True`` or ``False`` again. The kubelets act
    inside the server: injected faults do not affect them, and they go on while the server is stopped.
    """
    kubelets = _Kubelets(server, pace or KubeletPace())
    pods, nodes = server.store.collection("pods"), server.store.collection("nodes")
    for node in nodes.objects.values():
        kubelets.note_node(node)
    for pod in list(pods.objects.values()):
        kubelets.plan(pod)
    claims = server.store.collection(CLAIMS)
    stops = [pods.listen(kubelets.on_pod), nodes.listen(kubelets.on_node), claims.listen(kubelets.on_claim)]
    task_status.started()
    try:
        await kubelets.work()
    finally:
        for stop in stops:
            stop()
