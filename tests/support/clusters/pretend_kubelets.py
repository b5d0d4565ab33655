"""Kubelets that pretend to run containers, for a real control plane; they do what those of the simulator do."""

from datetime import UTC, datetime
from typing import Any

import httpx
import trio
from attrs import define, field
from workload_mirror import Mirror

from trio_sched.documents.json_values import Json
from trio_sched.simulator.kubelets.kubelet import EXIT_CODE, RUN_SECONDS

START_SECONDS = STOP_SECONDS = 0.5
_LEASE_SECONDS = 5.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@define(eq=False)
class PretendKubelets:
    """The kubelets of all nodes: pods start, end and are removed; leases are renewed."""

    client: httpx.AsyncClient
    mirror: Mirror
    nursery: trio.Nursery
    _planned: set[tuple[str, str]] = field(factory=set, init=False)
    _addresses: int = field(default=0, init=False)
    _cut_off: dict[str, trio.Event] = field(factory=dict, init=False)
    """Nodes whose kubelets do nothing → when they go on."""

    def __attrs_post_init__(self) -> None:
        self.mirror.listeners.append(self._on_change)

    def _on_change(self, kind: str, change: str, one: Json) -> None:
        if kind == "nodes" and change == "ADDED":
            self.nursery.start_soon(self._renew_lease, one["metadata"]["name"])
        elif kind == "pods" and change != "DELETED" and one["spec"].get("nodeName"):
            self._plan(one)

    def cut_off(self, node: str) -> None:
        """Let the kubelet of a node do nothing, which the node controller finds out by its lease."""
        self._cut_off[node] = trio.Event()

    async def reconnect(self, node: str) -> None:
        """Let it go on: it says that its node and the pods on it are ready."""
        await self._renew(node)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": _now()}
        body = {"status": {"conditions": [ready]}}
        (await self.client.patch(f"/api/v1/nodes/{node}/status", json=body, headers=_STRATEGIC)).raise_for_status()
        for pod in list(self.mirror.objects["pods"].values()):
            if pod["spec"].get("nodeName") == node and _is_marked(pod):
                await self._write(pod, {"conditions": [_condition("Ready", "True", _now())]})
        self._cut_off.pop(node).set()

    def _plan(self, pod: Json) -> None:
        metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
        annotations = metadata.get("annotations") or {}
        if f"/{pod['spec']['nodeName']}" not in self.mirror.objects["nodes"]:
            return
        if "deletionTimestamp" in metadata:
            if metadata.get("deletionGracePeriodSeconds"):
                self._schedule(pod, "stop", STOP_SECONDS)
        elif phase == "Pending":
            self._schedule(pod, "start", START_SECONDS)
        elif phase == "Running" and RUN_SECONDS in annotations:
            self._schedule(pod, "end", float(annotations[RUN_SECONDS]))

    def _schedule(self, pod: Json, step: str, seconds: float) -> None:
        known = (pod["metadata"]["uid"], step)
        if known not in self._planned:
            self._planned.add(known)
            self.nursery.start_soon(self._take, pod, step, seconds)

    async def _take(self, pod: Json, step: str, seconds: float) -> None:
        await trio.sleep(seconds)
        while (known := self._cut_off.get(pod["spec"]["nodeName"])) is not None:
            await known.wait()
            await trio.sleep(0.0 if step == "end" else seconds)  # of the others the kubelet learns only now
        metadata = pod["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        current = self.mirror.objects["pods"].get(key)
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            return
        if step != "stop" and "deletionTimestamp" in current["metadata"]:
            return
        if step == "start":
            await self._write(current, self._running(current))
        elif step == "end":
            code = int((metadata.get("annotations") or {}).get(EXIT_CODE, "0"))
            await self._write(current, _ended(current, code))
        else:
            if (current.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                await self._write(current, _ended(current, 143))
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            await self.client.request("DELETE", _path(current), json=body)

    async def _write(self, pod: Json, status: Json) -> None:
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        response = await self.client.patch(f"{_path(pod)}/status", json=body, headers=_STRATEGIC)
        if response.status_code not in (404, 409):  # gone, or replaced by one of the same name
            response.raise_for_status()

    def _running(self, pod: Json) -> Json:
        self._addresses += 1
        address, moment = f"10.1.{self._addresses >> 8}.{self._addresses & 255}", _now()
        kinds = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        return {
            "phase": "Running",
            "conditions": [_condition(kind, "True", moment) for kind in kinds],
            "hostIP": "192.0.2.1",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": moment,
            "containerStatuses": _statuses(pod, {"running": {"startedAt": moment}}, ready=True),
        }

    async def _renew_lease(self, node: str) -> None:
        while f"/{node}" in self.mirror.objects["nodes"]:
            if node not in self._cut_off:
                await self._renew(node)
            await trio.sleep(_LEASE_SECONDS)

    async def _renew(self, node: str) -> None:
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": _now().replace("Z", ".000000Z")}
        body = {"metadata": {"name": node}, "spec": spec}
        answer = await self.client.patch(
            f"{_LEASES}/{node}", json=body, headers={"content-type": "application/merge-patch+json"}
        )
        if answer.status_code == 404:
            await self.client.post(_LEASES, json=body)


def _is_marked(pod: Json) -> bool:
    """Whether a pod is ready but for what the node controller says."""
    status = pod.get("status") or {}
    states = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    runs = status.get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    return runs and states.get("ContainersReady") == "True" and states.get("Ready") == "False"


def _ended(pod: Json, code: int) -> Json:
    moment = _now()
    ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": moment}
    reason = "PodFailed" if code else "PodCompleted"
    return {
        "phase": "Failed" if code else "Succeeded",
        "conditions": [_condition(kind, "False", moment, reason) for kind in ("ContainersReady", "Ready")],
        "containerStatuses": _statuses(pod, {"terminated": ended}, ready=False),
    }


def _condition(kind: str, status: str, moment: str, reason: str = "") -> Json:
    made: Json = {"type": kind, "status": status, "lastTransitionTime": moment}
    return made | ({"reason": reason} if reason else {})


def _statuses(pod: Json, state: Json, *, ready: bool) -> list[Json]:
    rest: dict[str, Any] = {"imageID": "", "containerID": "", "restartCount": 0, "ready": ready, "state": state}
    return [{"name": one["name"], "image": one["image"], **rest} for one in pod["spec"]["containers"]]


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
