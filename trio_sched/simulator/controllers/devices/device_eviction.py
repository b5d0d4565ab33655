"""A simulated device taint eviction controller: deletes pods whose devices get a taint that they do not tolerate.

Source: the devicetainteviction controller of kube-controller-manager.
"""

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.devices.devices import SLICES
from trio_sched.simulator.controllers.nodes.node_matching import tolerates
from trio_sched.simulator.endpoints.subresources.pod_subresources import disrupt
from trio_sched.simulator.kubelets.claim_consumers import pods_of
from trio_sched.simulator.kubelets.kubelet import CLAIMS
from trio_sched.simulator.registry.lifecycle import DeleteOptions, delete
from trio_sched.simulator.storage.clock import parse_timestamp
from trio_sched.simulator.storage.object_store import Change, StoredObject

_REACT_SECONDS = 0.1


@define(eq=False)
class DeviceTaintEviction(Controller):
    """Deletes the pods of tainted devices, after the time for which they tolerate the taint."""

    _claims_of_pool: dict[tuple[str, str], dict[str, None]] = field(factory=dict, init=False)
    """(driver, pool) → claims with devices of it."""
    _slices_of_pool: dict[tuple[str, str], dict[str, None]] = field(factory=dict, init=False)

    def start(self) -> None:
        """Note slices and claims, and follow them."""
        for one in self.server.store.collection(SLICES).objects.values():
            self._slices_of_pool.setdefault(_pool_of(one), {})[one.key] = None
        for claim in self.server.store.collection(CLAIMS).objects.values():
            self._note_claim(claim)
        self.listen(SLICES, self._on_slice)
        self.listen(CLAIMS, self._on_claim)

    def _on_slice(self, change: Change) -> None:
        pool = _pool_of(change.current)
        known = self._slices_of_pool.setdefault(pool, {})
        if change.type == "DELETED":
            known.pop(change.current.key, None)
        else:
            known[change.current.key] = None
        for claim in self._claims_of_pool.get(pool, ()):
            self._steps.plan(self._sync, claim, _REACT_SECONDS)

    def _on_claim(self, change: Change) -> None:
        for version in (change.previous, change.current if change.type == "DELETED" else None):
            for result in _results(version):
                self._claims_of_pool.get((result["driver"], result["pool"]), {}).pop(change.current.key, None)
        if change.type != "DELETED":
            self._note_claim(change.current)

    def _note_claim(self, claim: StoredObject) -> None:
        results = _results(claim)
        for result in results:
            self._claims_of_pool.setdefault((result["driver"], result["pool"]), {})[claim.key] = None
        if results:
            self._steps.plan(self._sync, claim.key, _REACT_SECONDS)

    def _sync(self, key: str) -> None:
        claim = self.server.store.get(CLAIMS, key)
        if claim is None:
            return
        waits = [wait for result in _results(claim) for wait in self._seconds_left(result)]
        if not waits:
            return
        if min(waits) > 0:
            self._steps.plan(self._sync, key, min(waits))
            return
        for consumer in (claim.fields.get("status") or {}).get("reservedFor") or ():
            for pod in pods_of(self.server.store, claim, consumer):
                self._evict(pod)

    def _seconds_left(self, result: Json) -> list[float]:
        """For each taint that is not tolerated for ever: for how long still."""
        now = self.server.state.now().timestamp()
        waits = []
        for taint in self._taints_of(result):
            if taint.get("effect") != "NoExecute":
                continue
            tolerating = [one for one in result.get("tolerations") or () if tolerates([one], taint)]
            limits = [one["tolerationSeconds"] for one in tolerating if one.get("tolerationSeconds") is not None]
            if not tolerating:
                waits.append(0.0)
            elif limits:
                added = parse_timestamp(taint.get("timeAdded") or "")
                waits.append((added.timestamp() if added else now) + min(limits) - now)
        return waits

    def _taints_of(self, result: Json) -> list[Json]:
        for key in self._slices_of_pool.get((result["driver"], result["pool"]), ()):
            stored = self.server.store.get(SLICES, key)
            for device in (stored.fields["spec"].get("devices") or ()) if stored is not None else ():
                if device.get("name") == result["device"]:
                    return list(device.get("taints") or ())
        return []

    def _evict(self, pod: StoredObject) -> None:
        if "deletionTimestamp" in pod.fields["metadata"]:
            return
        state, pods = self.server.state, self.server.state.types.core("pods")
        why = "Device Taint manager: deleting due to NoExecute taint"
        marked = disrupt(state, pods, pod, "DeletionByDeviceTaintManager", why)
        delete(state, pods, marked, DeleteOptions())


def _results(claim: StoredObject | None) -> list[Json]:
    if claim is None:
        return []
    allocation = (claim.fields.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _pool_of(one: StoredObject) -> tuple[str, str]:
    spec = one.fields["spec"]
    return spec.get("driver") or "", (spec.get("pool") or {}).get("name") or ""
