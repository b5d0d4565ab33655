"""Devices and the claims that have them: judged by what the API server stores at each moment."""

from typing import Any

import trio
from attrs import define, field

from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing.cluster import VirtualCluster

Json = dict[str, Any]
_CLAIMS = "resourceclaims.resource.k8s.io"


@define(eq=False)
class DeviceLedger:
    """Follows the API server's history of claims and pods; each pod has at most one claim, of the same name."""

    cluster: VirtualCluster
    wrong: list[str] = field(factory=list)
    """Devices that two claims have, claims that change while a pod on a node uses them, pods without their device."""

    def __attrs_post_init__(self) -> None:
        store = self.cluster.api.store
        store.collection(_CLAIMS).listen(self._see_claim)
        store.collection("pods").listen(self._see_pod)

    def devices(self) -> dict[str, tuple[str, str]]:
        """Names of claims → the pool and the name of the device that each has."""
        stored = self.cluster.api.store.collection(_CLAIMS).objects.values()
        return {one.fields["metadata"]["name"]: found for one in stored if (found := _device(one.fields)) is not None}

    def _see_claim(self, change: Change) -> None:
        fields = change.current.fields
        name, device = fields["metadata"]["name"], _device(fields)
        if change.type == "DELETED":
            return
        if device is not None and any(other != name and found == device for other, found in self.devices().items()):
            self._note(f"{name} has {device}, which another has")
        pod = self.cluster.api.store.get("pods", f"default/{name}")
        if pod is not None and pod.fields["spec"].get("nodeName") and not _is_device_of(device, pod.fields):
            self._note(f"{name} has {device}, and its pod is on {pod.fields['spec']['nodeName']}")

    def _see_pod(self, change: Change) -> None:
        fields = change.current.fields
        if change.type == "DELETED" or not fields["spec"].get("nodeName") or not fields["spec"].get("resourceClaims"):
            return
        name = fields["metadata"]["name"]
        claim = self.cluster.api.store.get(_CLAIMS, f"default/{name}")
        if claim is None or not _is_device_of(_device(claim.fields), fields):
            self._note(f"{name} is on {fields['spec']['nodeName']} without its device")

    def _note(self, what: str) -> None:
        self.wrong.append(f"{trio.current_time():.3f} {what}")


def _device(claim: Json) -> tuple[str, str] | None:
    allocation = (claim.get("status") or {}).get("allocation")
    if not allocation:
        return None
    (result,) = allocation["devices"]["results"]
    return result["pool"], result["device"]


def _is_device_of(device: tuple[str, str] | None, pod: Json) -> bool:
    """Whether *device* is on the node of the pod; pools are called as their nodes."""
    return device is not None and device[0] == pod["spec"]["nodeName"]
