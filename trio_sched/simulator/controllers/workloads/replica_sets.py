"""Simulated controllers of ReplicaSets and ReplicationControllers: as many pods as there are to be replicas."""

from typing import ClassVar

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects, controller_of
from trio_sched.simulator.controllers.workloads.pod_ranking import first_to_delete
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, without_zeros
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.pod_states import (
    condition_of,
    is_active,
    is_ready,
    is_terminating,
    unavailable_for,
)
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.storage.object_store import StoredObject

_MOST_AT_ONCE = 500
"""As many pods one look at a ReplicaSet creates or deletes."""


@define(eq=False)
class ReplicaSetController(WorkloadController):
    """Creates and deletes the pods of ReplicaSets.

    Args:
        replica_sets: those of Deployments, whose pods are counted per node; None if the kind has no controllers.
    """

    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "ReplicaSet"
    component: ClassVar[str] = "replicaset-controller"

    replica_sets: ControlledObjects | None = None

    def sync(self, key: str) -> None:
        """Create the missing pods, or delete those that are too many."""
        stored = self.stored(key)
        if stored is None:
            return
        active = self.claim(stored, self.selector_of(stored.fields), self.pods, considered=is_active)
        refusal: ApiError | None = None
        if not is_terminating(stored.fields):
            try:
                self._manage(stored, active)
            except ApiError as error:
                if stored.fields["metadata"]["namespace"] not in self.server.state.terminating:
                    refusal = error
        self._write_status(stored, active, refusal)
        if refusal is not None:
            raise refusal

    def _manage(self, stored: StoredObject, active: list[StoredObject]) -> None:
        wanted = stored.fields["spec"].get("replicas", 1)
        template = stored.fields["spec"].get("template")
        if len(active) < wanted and template:
            missing = wanted - len(active)
            for number in range(min(missing, _MOST_AT_ONCE)):
                self.create_pod(stored, template, checked=number > 0)
        elif len(active) > wanted:
            superfluous = min(len(active) - wanted, _MOST_AT_ONCE)
            ranked = active
            if superfluous < len(active):
                ranked = first_to_delete(active, self._related(stored), self.server.state.now().timestamp())
            for pod in ranked[:superfluous]:
                self.delete_pod(stored, pod)

    def _related(self, stored: StoredObject) -> list[StoredObject]:
        """The pods of all ReplicaSets of the same Deployment."""
        owner = controller_of(stored.fields)
        siblings = [stored]
        if owner is not None and self.replica_sets is not None:
            siblings = self.replica_sets.of(owner.get("uid") or "")
        return [pod for sibling in siblings for pod in self.pods.of(sibling.fields["metadata"]["uid"])]

    def _write_status(self, stored: StoredObject, active: list[StoredObject], refusal: ApiError | None) -> None:
        spec, now = stored.fields["spec"], self.now()
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        waits = [unavailable_for(pod.fields, spec.get("minReadySeconds", 0), now) for pod in active]
        status: Json = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(
                labels.items() <= (pod.fields["metadata"].get("labels") or {}).items() for pod in active
            ),
            "readyReplicas": sum(is_ready(pod.fields) for pod in active),
            "availableReplicas": waits.count(0.0),
            "observedGeneration": stored.fields["metadata"].get("generation", 0),
            "conditions": self._conditions(stored, refusal, len(active)),
        }
        kept = ["replicas"]
        if self.kind == "ReplicaSet":
            status["terminatingReplicas"] = self._terminating(stored)
            kept.append("terminatingReplicas")
        self.write_status(stored, without_zeros(status, *kept))
        later = [wait for wait in waits if wait]
        if later:
            self.plan_after(stored.key, min(later))

    def _terminating(self, stored: StoredObject) -> int:
        """How many selected pods are being deleted and have not ended."""
        selector = self.selector_of(stored.fields)
        return sum(
            is_terminating(pod.fields)
            and not is_finished(pod.fields)
            and matches_labels(selector, pod.fields["metadata"].get("labels") or {})
            for pod in self.pods.of(stored.fields["metadata"]["uid"])
        )

    def _conditions(self, stored: StoredObject, refusal: ApiError | None, active: int) -> list[Json]:
        failure = condition_of(stored.fields, "ReplicaFailure")
        conditions = list((stored.fields.get("status") or {}).get("conditions") or ())
        if refusal is None:
            return [one for one in conditions if one is not failure]
        if failure is not None:
            return conditions
        reason = "FailedCreate" if active < stored.fields["spec"].get("replicas", 1) else "FailedDelete"
        return [
            *conditions,
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": self.server.state.timestamp(),
                "reason": reason,
                "message": refusal.message,
            },
        ]


@define(eq=False)
class ReplicationControllerController(ReplicaSetController):
    """Creates and deletes the pods of ReplicationControllers."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ReplicationController"
    component: ClassVar[str] = "replication-controller"

    def selector_of(self, fields: Json) -> Json | None:
        """The labels of the pods."""
        labels = (fields.get("spec") or {}).get("selector")
        return {"matchLabels": labels} if labels else None
