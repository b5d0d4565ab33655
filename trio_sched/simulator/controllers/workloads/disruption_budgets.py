"""A simulated disruption controller: how many pods of a PodDisruptionBudget may be disrupted now."""

from functools import partial
from typing import ClassVar, Final

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.controllers.workloads.rollout_sizes import scaled, status_of
from trio_sched.simulator.controllers.workloads.workload_controller import REACT_SECONDS, WorkloadController
from trio_sched.simulator.kubelets.pod_states import is_ready, is_terminating, unix_time
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.storage.object_store import Change, Collection, StoredObject

_SCALABLE: Final = {
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "Deployment"): "deployments.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("v1", "ReplicationController"): "replicationcontrollers",
}
_NOT_SCALABLE: Final = ("Job", "DaemonSet", "Node")
_EVICTION_SECONDS: Final = 120.0
"""How long a pod counts as evicted that is not being deleted."""


_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


class _NoScale(Exception):
    """A controller of pods has no scale; the text is that of Kubernetes."""


def in_go(selector: Json) -> str:
    """A label selector as Go prints it, which some events show."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key')},Operator:{one.get('operator')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


@define(eq=False)
class DisruptionController(WorkloadController):
    """Keeps the status of budgets.

    A budget keeps a status that it was given by hand, and one without ``minAvailable`` and ``maxUnavailable`` any.
    """

    api_version: ClassVar[str] = "policy/v1"
    kind: ClassVar[str] = "PodDisruptionBudget"
    component: ClassVar[str] = "controllermanager"

    def __attrs_post_init__(self) -> None:
        """Budgets control no pods: all pods are listened to."""
        budgets = self.server.store.collection(self.resource.collection)
        self.server.store.collection("pods").listen(partial(self._on_pod, budgets))

    def _on_pod(self, budgets: Collection, change: Change) -> None:
        if not budgets.objects:
            return
        metadata = change.current.fields["metadata"]
        before = change.previous.fields["metadata"].get("labels") if change.previous is not None else None
        selecting = []
        for budget in budgets.in_order(metadata["namespace"]):
            selector = budget.fields["spec"].get("selector")
            if matches_labels(selector, metadata.get("labels") or {}):
                selecting.append(budget)
                self.plan(budget.key)
            elif matches_labels(selector, before or {}):
                self.plan(budget.key)
        if len(selecting) > 1:
            self._steps.plan(self._tell_of_several, change.current.key, REACT_SECONDS)

    def _tell_of_several(self, key: str) -> None:
        """Write the event that several budgets select a pod, which cannot be evicted then."""
        pod = self.server.store.get("pods", key)
        if pod is None:
            return
        metadata = pod.fields["metadata"]
        for budget in self.server.store.collection(self.resource.collection).in_order(metadata["namespace"]):
            if matches_labels(budget.fields["spec"].get("selector"), metadata.get("labels") or {}):
                which = f'Pod "{metadata["namespace"]}"/"{metadata["name"]}"'
                name = budget.fields["metadata"]["name"]
                why = f'{which} matches multiple PodDisruptionBudgets.  Chose "{name}" arbitrarily.'
                pods = self.server.state.types.core("pods")
                self._events.warning(pods, pod, "MultiplePodDisruptionBudgets", why)
                return

    def sync(self, key: str) -> None:
        """Count the pods of a budget."""
        stored = self.stored(key)
        if stored is None:
            return
        spec, metadata = stored.fields["spec"], stored.fields["metadata"]
        most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if (most is None and least is None) or _is_written_by_hand(status_of(stored)):
            return
        pods = [
            pod
            for pod in self.server.store.collection("pods").in_order(metadata["namespace"])
            if matches_labels(spec.get("selector"), pod.fields["metadata"].get("labels") or {})
        ]
        if not pods:
            self.tell(stored, "NoPods", "No matching pods found")
        disrupted = self._disrupted(stored)
        healthy = sum(
            is_ready(pod.fields) and not is_terminating(pod.fields) and pod.fields["metadata"]["name"] not in disrupted
            for pod in pods
        )
        expected = len(pods)
        if most is not None or isinstance(least, str):
            try:
                expected = self._expected(pods)
            except _NoScale as error:
                self._fail(stored, str(error))
                return
            if any(controller_of(pod.fields) is None for pod in pods):
                self.warn(stored, "UnmanagedPods", _UNMANAGED.format(in_go(spec.get("selector") or {})))
        if most is not None:
            desired = max(expected - scaled(most, expected, up=True), 0)
        else:
            desired = scaled(least, expected, up=True)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: Json = {
            "observedGeneration": metadata.get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        reason = "SufficientPods" if allowed else "InsufficientPods"
        status["conditions"] = self._condition(stored, "True" if allowed else "False", reason, "")
        self.write_status(stored, status)

    def _disrupted(self, stored: StoredObject) -> Json:
        """The pods that were evicted and are still to be deleted, and when each was."""
        kept: Json = {}
        for name, moment in (status_of(stored).get("disruptedPods") or {}).items():
            pod = self.server.store.get("pods", f"{stored.fields['metadata']['namespace']}/{name}")
            left = (unix_time(moment) or 0.0) + _EVICTION_SECONDS - self.now()
            if pod is not None and not is_terminating(pod.fields) and left > 0:
                kept[name] = moment
                self.plan_after(stored.key, left)
        return kept

    def _expected(self, pods: list[StoredObject]) -> int:
        """How many pods their controllers are to have.

        Raises:
            _NoScale: one of the controllers has no scale.
        """
        sizes: dict[str, int] = {}
        for pod in pods:
            reference = controller_of(pod.fields)
            if reference is None:
                continue
            kind = self.server.state.types.of_kind(reference.get("apiVersion") or "", reference.get("kind") or "")
            if reference.get("kind") in _NOT_SCALABLE and kind is not None:
                raise _NoScale(f"{kind.collection} does not implement the scale subresource")
            owner = self._owner(pod, reference)
            if owner is None:  # one that is not simulated, or was not dumped: what there is is what there is to be
                uid = str(reference.get("uid"))
                sizes[uid] = sizes.get(uid, 0) + 1
                continue
            above = controller_of(owner.fields)
            top = owner if above is None else self._owner(owner, above) or owner
            sizes[top.fields["metadata"]["uid"]] = int(top.fields["spec"].get("replicas", 1))
        return sum(sizes.values())

    def _owner(self, stored: StoredObject, reference: Json) -> StoredObject | None:
        collection = _SCALABLE.get((reference.get("apiVersion") or "", reference.get("kind") or ""))
        if collection is None:
            return None
        found = self.server.store.get(collection, f"{stored.fields['metadata']['namespace']}/{reference.get('name')}")
        return found if found is not None and found.fields["metadata"]["uid"] == reference.get("uid") else None

    def _fail(self, stored: StoredObject, why: str) -> None:
        message = f"Failed to calculate the number of expected pods: {why}"
        self.warn(stored, "CalculateExpectedPodCountFailed", message)
        conditions = self._condition(stored, "False", "SyncFailed", why)
        self.write_status(stored, {**status_of(stored), "disruptionsAllowed": 0, "conditions": conditions})

    def _condition(self, stored: StoredObject, status: str, reason: str, message: str) -> list[Json]:
        conditions = list(status_of(stored).get("conditions") or ())
        old = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), None)
        generation = stored.fields["metadata"].get("generation", 0)
        same = old is not None and old.get("status") == status
        since = old.get("lastTransitionTime") if old is not None and same else self.server.state.timestamp()
        fresh: Json = {
            "type": "DisruptionAllowed",
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        return [*(one for one in conditions if one is not old), fresh]


def _is_written_by_hand(status: Json) -> bool:
    """Whether a status has figures without the condition that controllers write with them."""
    return not status.get("conditions") and any(status.values())
