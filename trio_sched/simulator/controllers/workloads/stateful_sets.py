"""A simulated stateful set controller: pods with numbers, one after the other, each with its own claims."""

import re
from typing import ClassVar, Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.revision_history import REVISION_LABEL, RevisionHistory, template_of
from trio_sched.simulator.controllers.workloads.rollout_sizes import replicas_of, status_of
from trio_sched.simulator.controllers.workloads.stateful_claims import StatefulClaims, claim_volumes, with_claims
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, without_zeros
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.pod_states import (
    is_available,
    is_ready,
    is_terminating,
    unavailable_for,
)
from trio_sched.simulator.pods.pod_phase import is_finished, phase_of
from trio_sched.simulator.registry.lifecycle import change
from trio_sched.simulator.storage.object_store import StoredObject, copied

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_NUMBERED: Final = re.compile(r"(.*)-([0-9]{1,9})")


@define(eq=False)
class StatefulSetController(WorkloadController):
    """Creates, replaces and deletes the pods of StatefulSets.

    Args:
        revisions: of their pod templates.
    """

    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "StatefulSet"
    component: ClassVar[str] = "statefulset-controller"

    revisions: ControlledObjects
    _history: RevisionHistory = field(init=False)
    _claims: StatefulClaims = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._history = RevisionHistory(self, self.revisions)
        self._claims = StatefulClaims(self)

    def sync(self, key: str) -> None:
        """Take the next step towards the replicas and the pod template that are asked for."""
        stored = self.stored(key)
        if stored is None:
            return
        if is_terminating(stored.fields):
            return
        self._restore_revisions(stored)
        update = self._history.latest(stored)
        named = status_of(stored).get("currentRevision")
        known = self._history.of(stored)
        current = next((one for one in known if one.fields["metadata"]["name"] == named), update)
        try:
            self._act(stored, current, update)
        finally:
            self._write_status(stored, current, update)
        pods = self._pods(stored)
        in_use = {_revision_of(pod) for pod in pods.values()} | {_name(current), _name(update)}
        self._history.truncate(stored, in_use, in_use)

    def _pods(self, stored: StoredObject) -> dict[int, StoredObject]:
        """The pods of a set by their numbers."""
        name = stored.fields["metadata"]["name"]

        def is_member(fields: Json) -> bool:
            match = _NUMBERED.fullmatch(fields["metadata"]["name"])
            return match is not None and match[1] == name

        claimed = self.claim(stored, self.selector_of(stored.fields), self.pods, member=is_member)
        return {int(pod.fields["metadata"]["name"].rpartition("-")[2]): pod for pod in claimed}

    def _restore_revisions(self, stored: StoredObject) -> None:
        """Give a set of a dump without ControllerRevisions those that its pods are of."""
        status = status_of(stored)
        seen = status.get("observedGeneration") == stored.fields["metadata"].get("generation")
        if not seen or self._history.of(stored):
            return
        for number, name in enumerate((status.get("currentRevision"), status.get("updateRevision")), start=1):
            if name and (number == 2 or name != status.get("updateRevision")):
                self._history.restore(stored, name, name.rpartition("-")[2], number)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _act(self, stored: StoredObject, current: StoredObject, update: StoredObject) -> None:
        spec, pods = stored.fields["spec"], self._pods(stored)
        start = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(start, start + replicas_of(stored))
        in_order = spec.get("podManagementPolicy") != "Parallel"
        unhealthy = next(
            (
                number
                for number in [*wanted, *sorted(pods.keys() - set(wanted))]
                if not self._serves(stored, pods.get(number))
            ),
            None,
        )
        for number in wanted:
            waits = self._bring_about(stored, pods.get(number), number, current, update)
            if waits and in_order:
                return
        condemned = sorted((number for number in pods if number not in wanted), reverse=True)
        for number in condemned:
            self._claims.keep_owners(stored, pods[number], condemned=True)
        for number in condemned:
            pod = pods[number]
            if in_order and is_terminating(pod.fields):
                return
            if in_order and not self._serves(stored, pod) and number != unhealthy:
                return
            if not is_terminating(pod.fields):
                self.delete_pod(stored, pod)
                if in_order:
                    return
        if spec.get("updateStrategy", {}).get("type") != "OnDelete":
            self._roll(stored, self._pods(stored), wanted, update)

    def _bring_about(
        self, stored: StoredObject, pod: StoredObject | None, number: int, current: StoredObject, update: StoredObject
    ) -> bool:
        """Take the next step for one replica; whether the ones after it have to wait."""
        if pod is None:
            self._create(stored, number, self._revision_for(stored, number, current, update))
            return True
        if is_finished(pod.fields):
            self.delete_pod(stored, pod)
            return True
        if phase_of(pod.fields) == "Pending":
            self._claims.create_missing(stored, number)
            self._claims.keep_owners(stored, pod, condemned=False)
        serves = self._serves(stored, pod)
        if serves or stored.fields["spec"].get("podManagementPolicy") == "Parallel":
            self._conform(stored, pod, number)
        return not serves

    def _conform(self, stored: StoredObject, pod: StoredObject, number: int) -> None:
        """Give a pod what a replica has and one that was adopted lacks, and its claims their owners.

        Raises:
            ApiError: its volumes cannot be changed.
        """
        metadata, name = pod.fields["metadata"], pod.fields["metadata"]["name"]
        has_owners = not self._claims.keep_owners(stored, pod, condemned=False)
        spec, labels = self._claims.mounted(stored, pod), metadata.get("labels") or {}
        if labels.get(POD_NAME) == name and spec is pod.fields["spec"]:
            if not has_owners:
                self.tell_of_pod(stored, "Update", name)
            return
        self._claims.create_missing(stored, number)
        fresh = {**metadata, "labels": {**labels, POD_NAME: name, POD_INDEX: str(number)}}
        state = self.server.state
        try:
            change(state, state.types.core("pods"), pod, copied({**pod.fields, "metadata": fresh, "spec": spec}))
        except ApiError as error:
            self.tell_of_pod(stored, "Update", name, error)
            raise
        self.tell_of_pod(stored, "Update", name)

    def _serves(self, stored: StoredObject, pod: StoredObject | None) -> bool:
        if pod is None or is_terminating(pod.fields) or phase_of(pod.fields) != "Running":
            return False
        return is_available(pod.fields, stored.fields["spec"].get("minReadySeconds", 0), self.now())

    def _revision_for(
        self, stored: StoredObject, number: int, current: StoredObject, update: StoredObject
    ) -> StoredObject:
        spec = stored.fields["spec"]
        strategy, start = spec.get("updateStrategy") or {}, (spec.get("ordinals") or {}).get("start", 0)
        update_rules = strategy.get("rollingUpdate")
        if update_rules is not None:
            return current if number < start + update_rules.get("partition", 0) else update
        if strategy.get("type") == "RollingUpdate" and number < start + status_of(stored).get("currentReplicas", 0):
            return current
        return update

    def _create(self, stored: StoredObject, number: int, revision: StoredObject) -> None:
        self._claims.create_missing(stored, number)
        template = copied(template_of(revision))
        name = f"{stored.fields['metadata']['name']}-{number}"
        metadata = template["metadata"] = template.get("metadata") or {}
        own = {POD_NAME: name, POD_INDEX: str(number), REVISION_LABEL: _name(revision)}
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        spec = template["spec"]
        spec["hostname"] = name
        if stored.fields["spec"].get("serviceName"):
            spec["subdomain"] = stored.fields["spec"]["serviceName"]
        volumes = claim_volumes(stored, number)
        if volumes:
            spec["volumes"] = with_claims(list(spec.get("volumes") or ()), volumes)
        self.create_pod(stored, template, name=name)

    def tell_of_pod(self, owner: StoredObject, verb: str, name: str, error: ApiError | None = None) -> None:
        """Write the event that a pod of *owner* was created or deleted, or why it was not."""
        what = f"{verb} Pod {name} in StatefulSet {owner.fields['metadata']['name']}"
        if error is not None:
            self.warn(owner, f"Failed{verb}", f"{what} failed error: {error.message}")
        else:
            self.tell(owner, f"Successful{verb}", f"{what} successful")

    def _roll(self, stored: StoredObject, pods: dict[int, StoredObject], wanted: range, update: StoredObject) -> None:
        """Delete the last pod of another revision, if all after it are available."""
        rules = (stored.fields["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        for number in reversed(wanted[min(rules.get("partition", 0), len(wanted)) :]):
            pod = pods.get(number)
            if pod is not None and not is_terminating(pod.fields) and _revision_of(pod) != _name(update):
                self.delete_pod(stored, pod)
                return
            if not self._serves(stored, pod):
                return

    # --- status -----------------------------------------------------------------------------------------------------

    def _write_status(self, stored: StoredObject, current: StoredObject, update: StoredObject) -> None:
        pods = [pod for pod in self._pods(stored).values()]
        ready_seconds, now = stored.fields["spec"].get("minReadySeconds", 0), self.now()
        running = [pod for pod in pods if phase_of(pod.fields) == "Running" and is_ready(pod.fields)]
        waits = [unavailable_for(pod.fields, ready_seconds, now) for pod in running]
        kept = [_revision_of(pod) for pod in pods if not is_terminating(pod.fields)]
        status: Json = {
            "observedGeneration": stored.fields["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": len(running),
            "currentReplicas": kept.count(_name(current)),
            "updatedReplicas": kept.count(_name(update)),
            "currentRevision": _name(current),
            "updateRevision": _name(update),
            "collisionCount": 0,
            "availableReplicas": waits.count(0.0),
        }
        rolls = (stored.fields["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate"
        counts = {status[name] for name in ("updatedReplicas", "readyReplicas", "replicas")}
        if rolls and counts == {replicas_of(stored)}:
            status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": status["updateRevision"]}
        self.write_status(stored, without_zeros(status, "replicas", "collisionCount", "availableReplicas"))
        later = [wait for wait in waits if wait]
        if later:
            self.plan_after(stored.key, min(later))


def _name(revision: StoredObject) -> str:
    name: str = revision.fields["metadata"]["name"]
    return name


def _revision_of(pod: StoredObject) -> str:
    name: str = (pod.fields["metadata"].get("labels") or {}).get(REVISION_LABEL) or ""
    return name
