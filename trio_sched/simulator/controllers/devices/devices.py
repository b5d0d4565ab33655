"""Simulated device drivers: they publish the devices of nodes, prepare those that are allocated, and let some fail.

A node's devices are declared in an annotation, per driver::

    metadata:
      annotations:
        trio-sched.dev/devices: |
          gpu.example.com:
            count: 8
            device:                      # as in a ResourceSlice; the names are gpu-0, gpu-1 and so on
              attributes: {model: {string: a100}}
              capacity: {memory: {value: 40Gi}}
            failed: [gpu-3]              # these get a NoExecute taint
            failAfterSeconds: {gpu-5: 60}

It can be changed while the cluster runs; the pool gets a new generation then.
"""

import logging
from collections.abc import Iterator
from typing import Any

import trio
from attrs import define, field, frozen

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.json_values import Json
from trio_sched.documents.plain import read_plain
from trio_sched.go.text import shortened
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.kubelet import CLAIMS
from trio_sched.simulator.registry.lifecycle import DeleteOptions, create, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

log = logging.getLogger(__name__)

DEVICES = "trio-sched.dev/devices"
"""Annotation of a node: the devices that drivers publish for it."""
FAILED = "trio-sched.dev/failed"
"""Key of the taint of a device that has failed."""
SLICES = "resourceslices.resource.k8s.io"
MAX_DEVICES = 128
"""The most devices of one driver on one node: what fits into one slice."""

_FIELDS = {"count", "device", "failed", "failAfterSeconds"}


@frozen(kw_only=True)
class DriverPace:
    """How fast drivers are, in seconds.

    Attributes:
        publish_seconds: from a change of the node to that of its slices.
        prepare_seconds: from the allocation of a device until it is ready, its binding conditions met.
    """

    publish_seconds: float = 0.2
    prepare_seconds: float = 0.5


@define(eq=False)
class DeviceDrivers(Controller):
    """All drivers on all nodes of a cluster."""

    pace: DriverPace = field(factory=DriverPace)
    _published: dict[str, dict[str, str]] = field(factory=dict, init=False)
    """Node → driver → its slice."""
    _since: dict[str, float] = field(factory=dict, init=False)
    """Node → when its devices were first published."""

    def start(self) -> None:
        """Publish the devices of the nodes that there are; follow nodes and claims."""
        for key in list(self.server.store.collection("nodes").objects):
            self._sync_node(key)  # a cluster begins with the devices that its nodes have
        for claim in self.server.store.collection(CLAIMS).objects.values():
            self._plan_claim(claim)
        self.listen("nodes", self._on_node)
        self.listen(CLAIMS, self._on_claim)

    # --- publishing -------------------------------------------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        if change.type == "MODIFIED" and change.previous is not None:
            before, after = (_annotation(one) for one in (change.previous, change.current))
            if before == after:
                return
        if change.current.key in self._published or _annotation(change.current) is not None:
            self._steps.plan(self._sync_node, change.current.key, self.pace.publish_seconds)

    def _sync_node(self, key: str) -> None:
        """Publish the devices of a node as they are now; those of drivers that are gone are withdrawn."""
        node = self.server.store.get("nodes", key)
        text = None if node is None else _annotation(node)
        wanted: dict[str, Json] = {}
        if node is not None and text is not None:
            try:
                wanted = read_devices(text)
            except ValueError as problem:
                log.warning("node %s: annotation %s is ignored: %s", key, DEVICES, problem)
                return
            since = self._since.setdefault(key, trio.current_time())
            for driver, declared in wanted.items():
                failed = set(declared.get("failed") or ())
                for name, seconds in (declared.get("failAfterSeconds") or {}).items():
                    left = since + seconds - trio.current_time()
                    if left <= 0:
                        failed.add(name)
                    else:
                        self._steps.plan(self._sync_node, key, left)
                self._publish(node, driver, declared, failed)
        published = self._published.get(key, {})
        for driver in [one for one in published if one not in wanted]:
            stored = self.server.store.get(SLICES, published.pop(driver))
            if stored is not None:
                delete(self.server.state, self._type("ResourceSlice"), stored, DeleteOptions())
        if not published:
            self._published.pop(key, None)
        if node is None:
            self._since.pop(key, None)

    def _publish(self, node: StoredObject, driver: str, declared: Json, failed: set[str]) -> None:
        prefix = driver.partition(".")[0]
        moment = self.server.state.timestamp()
        devices: list[Json] = []
        for number in range(declared["count"]):
            device: Json = {"name": f"{prefix}-{number}", **(declared.get("device") or {})}
            if device["name"] in failed:
                taint = {"key": FAILED, "effect": "NoExecute", "timeAdded": moment}
                device["taints"] = [*(device.get("taints") or ()), taint]
            devices.append(device)
        name = f"{node.key}-{driver}"
        pool: Json = {"name": node.key, "generation": 1, "resourceSliceCount": 1}
        stored = self.server.store.get(SLICES, name)
        try:
            if stored is None:
                spec: Json = {"driver": driver, "nodeName": node.key, "pool": pool, "devices": devices}
                owner = {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": node.key,
                    "uid": node.fields["metadata"]["uid"],
                    "controller": True,
                }
                fields = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
                create(self.server.state, self._type("ResourceSlice"), "", fields)
            else:
                spec = dict(stored.fields["spec"])
                known = {one["name"]: one.get("taints") for one in spec.get("devices") or ()}
                for device in devices:  # a taint keeps the time at which it was added
                    if _without_times(known.get(device["name"])) == _without_times(device.get("taints")):
                        _set(device, "taints", known.get(device["name"]))
                if devices != spec.get("devices"):
                    pool["generation"] = (spec.get("pool") or {}).get("generation", 0) + 1
                    resource = self._type("ResourceSlice")
                    write_fields(self.server.state, resource, stored, spec={**spec, "pool": pool, "devices": devices})
        except ApiError as refused:
            log.warning("node %s: devices of %s are not published: %s", node.key, driver, refused.message)
            return
        self._published.setdefault(node.key, {})[driver] = name

    # --- preparing --------------------------------------------------------------------------------------------------

    def _on_claim(self, change: Change) -> None:
        if change.type != "DELETED":
            self._plan_claim(change.current)

    def _plan_claim(self, claim: StoredObject) -> None:
        if next(self._unprepared(claim), None) is not None:
            self._steps.plan(self._prepare, claim.key, self.pace.prepare_seconds)

    def _unprepared(self, claim: StoredObject) -> Iterator[Json]:
        """The allocated devices of ours that have no status yet."""
        status = claim.fields.get("status") or {}
        known = {_identity(one) for one in status.get("devices") or ()}
        for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ():
            is_ours = result.get("driver") in self._published.get(result.get("pool") or "", {})
            if is_ours and _identity(result) not in known:
                yield result

    def _prepare(self, key: str) -> None:
        claim = self.server.store.get(CLAIMS, key)
        if claim is None:
            return
        moment, listed = self.server.state.timestamp(), []
        for result in self._unprepared(claim):
            works = not self._has_failed(result)
            met = (result.get("bindingConditions") or ()) if works else (result.get("bindingFailureConditions") or ())
            conditions = [_condition(kind, "True", moment) for kind in met]
            conditions.append(_condition("Ready", "True" if works else "False", moment))
            names = ("driver", "pool", "device", "shareID")
            listed.append({name: result[name] for name in names if name in result} | {"conditions": conditions})
        if listed:
            status = dict(claim.fields["status"])
            status["devices"] = [*(status.get("devices") or ()), *listed]
            write_fields(self.server.state, self._type("ResourceClaim"), claim, status=status)

    def _has_failed(self, result: Json) -> bool:
        stored = self.server.store.get(SLICES, self._published[result["pool"]][result["driver"]])
        devices = stored.fields["spec"].get("devices") or () if stored is not None else ()
        taints = next((one.get("taints") or () for one in devices if one["name"] == result["device"]), ())
        return any(taint.get("key") == FAILED for taint in taints)

    def _type(self, kind: str) -> ResourceType:
        resource = self.server.state.types.of_kind("resource.k8s.io/v1", kind)
        assert resource is not None  # a built-in type
        return resource


def read_devices(text: str) -> dict[str, Json]:
    """Driver → what the annotation says about its devices.

    Raises:
        ValueError: it is not as described above; the error says what is wrong.
    """
    try:
        documents = [one.value for one in read_plain(text)]
    except DocumentError as error:
        raise ValueError(str(error)) from error
    value = documents[0] if len(documents) == 1 else None
    if not isinstance(value, dict):
        raise ValueError("it is no mapping from driver names to devices")
    for driver, declared in value.items():
        if not isinstance(driver, str) or not isinstance(declared, dict):
            raise ValueError(f"{shortened(str(driver))}: a mapping with count is expected")
        unknown = declared.keys() - _FIELDS
        if unknown:
            raise ValueError(f"{driver}: unknown field {shortened(str(min(unknown, key=str)))}")
        count = declared.get("count")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_DEVICES:
            raise ValueError(f"{driver}: count must be a whole number from 0 to {MAX_DEVICES}")
        if not isinstance(declared.get("device") or {}, dict):
            raise ValueError(f"{driver}: device must be a mapping")
        failed = declared.get("failed") or []
        if not isinstance(failed, list) or not all(isinstance(one, str) for one in failed):
            raise ValueError(f"{driver}: failed must be a list of device names")
        later = declared.get("failAfterSeconds") or {}
        if not isinstance(later, dict) or not all(_is_seconds(one) for one in later.values()):
            raise ValueError(f"{driver}: failAfterSeconds must map device names to seconds")
    return value


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _annotation(node: StoredObject) -> str | None:
    return (node.fields["metadata"].get("annotations") or {}).get(DEVICES)


def _identity(one: Json) -> tuple[Any, ...]:
    return tuple(one.get(name) for name in ("driver", "pool", "device", "shareID"))


def _condition(kind: str, status: str, moment: str) -> Json:
    reason = "Prepared" if status == "True" else "Failed"
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": moment}


def _without_times(taints: Any) -> list[Json]:
    return [{name: value for name, value in one.items() if name != "timeAdded"} for one in taints or ()]


def _set(fields: Json, name: str, value: Any) -> None:
    if value is None:
        fields.pop(name, None)
    else:
        fields[name] = value
