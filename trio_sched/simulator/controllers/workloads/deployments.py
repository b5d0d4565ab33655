"""A simulated deployment controller: a ReplicaSet per pod template, and the way from one to the next."""

from typing import ClassVar, Final

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.deployment_status import (
    calculated,
    condition,
    is_complete,
    progress_deadline,
    set_condition,
    with_progress,
)
from trio_sched.simulator.controllers.workloads.revisions import normal_template, template_hash
from trio_sched.simulator.controllers.workloads.rollout_sizes import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    annotations_of,
    max_surge,
    max_unavailable,
    new_size,
    proportional_sizes,
    replicas_of,
    rolls,
    status_of,
)
from trio_sched.simulator.controllers.workloads.workload_controller import (
    WorkloadController,
    owner_reference,
    without_zeros,
)
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.pod_states import condition_of, is_terminating, unix_time
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.lifecycle import create, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject, copied

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_NOT_COPIED: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    _HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
)


@define(eq=False)
class DeploymentController(WorkloadController):
    """Rolls Deployments out.

    Args:
        replica_sets: by their Deployments.
    """

    api_version: ClassVar[str] = "apps/v1"
    kind: ClassVar[str] = "Deployment"
    component: ClassVar[str] = "deployment-controller"

    replica_sets: ControlledObjects

    def start(self) -> None:
        """Follow the ReplicaSets as well, and pods that are gone."""
        super().start()
        self.replica_sets.follow(self.kind, lambda key, _change: self.plan(key))
        self.replica_sets.follow_orphans(self._on_orphan)
        self.pods.follow("ReplicaSet", self._on_pod_of_set)

    def _on_pod_of_set(self, key: str, change: Change) -> None:
        if change.type != "DELETED":
            return  # the status of the ReplicaSet will tell
        replica_set = self.server.store.get("replicasets.apps", key)
        for reference in (replica_set.fields["metadata"].get("ownerReferences") or ()) if replica_set else ():
            if reference.get("kind") == self.kind:
                self.plan(f"{key.partition('/')[0]}/{reference.get('name')}")

    def _on_orphan(self, change: Change) -> None:
        if change.current.fields.get("spec", {}).get("containers") is None:  # a ReplicaSet: pods have their own
            super()._on_orphan(change)

    def sync(self, key: str) -> None:
        """Take the next step of a rollout."""
        deployment = self.stored(key)
        if deployment is None:
            return
        sets = self.claim(deployment, self.selector_of(deployment.fields), self.replica_sets)
        if is_terminating(deployment.fields):
            self._finish(deployment, self._split(deployment, sets), progresses=False)
            return
        deployment = self._note_pause(deployment)
        new, old = self._split(deployment, sets)
        if new is not None:
            new = self._annotate(deployment, new, old)
            deployment = self._note_revision(deployment, annotations_of(new).get(REVISION, ""), found=new)
        if deployment.fields["spec"].get("paused") or self._is_scaled(deployment, new, old):
            self._scale(deployment, new, old)
            if deployment.fields["spec"].get("paused"):
                self._clean_up(deployment, old)
            self._finish(deployment, (new, old), progresses=False)
        elif rolls(deployment):
            self._roll(deployment, new, old)
        else:
            self._recreate(deployment, new, old)

    # --- ReplicaSets ------------------------------------------------------------------------------------------------

    def _split(
        self, deployment: StoredObject, sets: list[StoredObject]
    ) -> tuple[StoredObject | None, list[StoredObject]]:
        """The ReplicaSet of the pod template, and the others."""
        wanted = normal_template(deployment.fields["spec"]["template"], TEMPLATE_HASH)
        by_age = sorted(sets, key=lambda one: (one.fields["metadata"].get("creationTimestamp") or "", one.key))
        for one in by_age:
            template = one.fields["spec"].get("template") or {}
            if normal_template(template, TEMPLATE_HASH) == wanted:
                return one, [other for other in by_age if other is not one]
        return None, by_age

    def _create(self, deployment: StoredObject, old: list[StoredObject]) -> StoredObject:
        spec, metadata = deployment.fields["spec"], deployment.fields["metadata"]
        collisions = status_of(deployment).get("collisionCount", 0)
        digest = template_hash(spec["template"], collisions)
        name = f"{metadata['name'][: 252 - len(digest)]}-{digest}"
        resource = self.resource_of("apps/v1", "ReplicaSet")
        if self.server.store.get(resource.collection, f"{metadata['namespace']}/{name}") is not None:
            self.write_status(deployment, {**status_of(deployment), "collisionCount": collisions + 1})
            raise ApiError(409, "AlreadyExists", f'replicasets.apps "{name}" already exists')
        template = copied(spec["template"])
        labels = {**((template.get("metadata") or {}).get("labels") or {}), TEMPLATE_HASH: digest}
        template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
        selector = copied(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: digest}
        revision = str(1 + max((_revision(one) for one in old), default=0))
        made: Json = {
            "metadata": {
                "name": name,
                "labels": dict(labels),
                "annotations": {
                    **{k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED},
                    **_sizes(deployment),
                    REVISION: revision,
                },
                "ownerReferences": [owner_reference(self.resource, deployment)],
            },
            "spec": {
                "replicas": new_size(deployment, sum(map(replicas_of, old)), 0),
                "selector": selector,
                "template": template,
            },
        }
        if spec.get("minReadySeconds"):
            made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        try:
            new = create(self.server.state, resource, metadata["namespace"], made)
        except ApiError as error:
            why = f'Failed to create new replica set "{name}": {error.message}'
            if progress_deadline(deployment) is not None:
                self._note(deployment, condition("Progressing", "False", "ReplicaSetCreateError", why))
            self.warn(deployment, "ReplicaSetCreateError", why)
            raise
        size = made["spec"]["replicas"]
        if size > 0:
            self.tell(deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        deployment = self._note_revision(deployment, revision)
        if progress_deadline(deployment) is not None:
            why = f'Created new replica set "{name}"'
            self._note(deployment, condition("Progressing", "True", "NewReplicaSetCreated", why))
        return new

    def _annotate(self, deployment: StoredObject, new: StoredObject, old: list[StoredObject]) -> StoredObject:
        """Make the ReplicaSet of the template the one with the highest revision."""
        annotations = dict(annotations_of(new))
        annotations |= {k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}
        revision = 1 + max((_revision(one) for one in old), default=0)
        if _revision(new) < revision:
            if annotations.get(REVISION):
                history = annotations.get(_HISTORY)
                annotations[_HISTORY] = f"{history},{annotations[REVISION]}" if history else annotations[REVISION]
            annotations[REVISION] = str(revision)
        spec, ready_seconds = new.fields["spec"], deployment.fields["spec"].get("minReadySeconds", 0)
        if annotations == annotations_of(new) and spec.get("minReadySeconds", 0) == ready_seconds:
            return new
        spec = {**spec, "minReadySeconds": ready_seconds} if ready_seconds else _without(spec, "minReadySeconds")
        return self._write_set(new, spec, annotations)

    def _write_set(self, stored: StoredObject, spec: Json, annotations: Json) -> StoredObject:
        metadata = {**stored.fields["metadata"], "annotations": annotations}
        return self.write_spec(self.resource_of("apps/v1", "ReplicaSet"), stored, spec, metadata)

    def _resize(self, deployment: StoredObject, one: StoredObject, size: int, *, always: bool = False) -> bool:
        """Give a ReplicaSet another size; whether it had one."""
        if replicas_of(one) == size and not always:
            return False
        annotations = {**annotations_of(one), **_sizes(deployment)}
        if replicas_of(one) == size and annotations == annotations_of(one):
            return False
        self._write_set(one, {**one.fields["spec"], "replicas": size}, annotations)
        before = replicas_of(one)
        if before != size:
            what = f"replica set {one.fields['metadata']['name']} from {before} to {size}"
            self.tell(deployment, "ScalingReplicaSet", f"Scaled {'up' if before < size else 'down'} {what}")
        return before != size

    # --- rollouts ---------------------------------------------------------------------------------------------------

    def _is_scaled(self, deployment: StoredObject, new: StoredObject | None, old: list[StoredObject]) -> bool:
        wanted = replicas_of(deployment)
        noted = (number_in(annotations_of(one).get(DESIRED_REPLICAS)) for one in _active([*old, *_some(new)]))
        return any(number is not None and number != wanted for number in noted)

    def _scale(self, deployment: StoredObject, new: StoredObject | None, old: list[StoredObject]) -> None:
        wanted, active = replicas_of(deployment), _active([*old, *_some(new)])
        if len(active) <= 1:
            latest = active[0] if active else new or max(old, key=_revision, default=None)
            if latest is not None:
                self._resize(deployment, latest, wanted, always=True)
            return
        if new is not None and _is_saturated(deployment, new):
            for one in _active(old):
                self._resize(deployment, one, 0)
        elif rolls(deployment):
            sizes = proportional_sizes(deployment, active)
            for one in active:
                self._resize(deployment, one, sizes[one.key], always=True)

    def _roll(self, deployment: StoredObject, new: StoredObject | None, old: list[StoredObject]) -> None:
        if new is None:
            new = self._create(deployment, old)
        elif replicas_of(new) != replicas_of(deployment):
            total = sum(map(replicas_of, [new, *old]))
            size = min(new_size(deployment, total, replicas_of(new)), replicas_of(deployment))
            if self._resize(deployment, new, size):
                self._finish(deployment, (new, old))
                return
        if not self._shrink_old(deployment, new, old) and is_complete(deployment, status_of(deployment)):
            self._clean_up(deployment, old)
        self._finish(deployment, (new, old))

    def _shrink_old(self, deployment: StoredObject, new: StoredObject, old: list[StoredObject]) -> bool:
        """Scale old ReplicaSets down as far as enough replicas stay available; first those that are not."""
        least = replicas_of(deployment) - max_unavailable(deployment)
        active = _active(old)
        missing = replicas_of(new) - status_of(new).get("availableReplicas", 0)
        spare = sum(map(replicas_of, [new, *old])) - least - missing
        stale = any(status_of(one).get("availableReplicas", 0) > replicas_of(one) for one in active)
        if not active or spare <= 0 or stale:
            return False
        sizes = {one.key: replicas_of(one) for one in active}
        for one in active:
            unhealthy = max(sizes[one.key] - status_of(one).get("availableReplicas", 0), 0)
            cleaned = min(spare, unhealthy)
            sizes[one.key] -= cleaned
            spare -= cleaned
        available = sum(status_of(one).get("availableReplicas", 0) for one in [new, *old]) - least
        for one in active:
            taken = min(max(available, 0), sizes[one.key])
            sizes[one.key] -= taken
            available -= taken
        return any([self._resize(deployment, one, sizes[one.key]) for one in active])

    def _recreate(self, deployment: StoredObject, new: StoredObject | None, old: list[StoredObject]) -> None:
        if any([self._resize(deployment, one, 0) for one in _active(old)]) or self._has_old_pods(old):
            self._finish(deployment, (new, old))
            return
        if new is None:
            new = self._create(deployment, old)
        self._resize(deployment, new, replicas_of(deployment))
        if is_complete(deployment, status_of(deployment)):
            self._clean_up(deployment, old)
        self._finish(deployment, (new, old))

    def _has_old_pods(self, old: list[StoredObject]) -> bool:
        return any(
            status_of(one).get("replicas", 0) or any(not is_finished(pod.fields) for pod in self._pods_of(one))
            for one in old
        )

    def _pods_of(self, replica_set: StoredObject) -> list[StoredObject]:
        return self.pods.of(replica_set.fields["metadata"]["uid"])

    def _clean_up(self, deployment: StoredObject, old: list[StoredObject]) -> None:
        """Delete the oldest ReplicaSets beyond the limit of the history."""
        limit = deployment.fields["spec"].get("revisionHistoryLimit")
        alive = [one for one in old if not is_terminating(one.fields)]
        if limit is None or len(alive) <= limit:
            return
        for one in sorted(alive, key=_revision)[: len(alive) - limit]:
            status, metadata = status_of(one), one.fields["metadata"]
            seen = metadata.get("generation", 0) <= status.get("observedGeneration", 0)
            if not replicas_of(one) and not status.get("replicas") and seen:
                self.delete(self.resource_of("apps/v1", "ReplicaSet"), one)

    # --- status -----------------------------------------------------------------------------------------------------

    def _finish(
        self,
        deployment: StoredObject,
        found: tuple[StoredObject | None, list[StoredObject]],
        *,
        progresses: bool = True,
    ) -> None:
        deployment = self.stored(deployment.key) or deployment
        moment, now = self.server.state.timestamp(), self.now()
        new, old = found
        current = [self.server.store.get("replicasets.apps", one.key) for one in [*old, *_some(new)]]
        sets = [one for one in current if one is not None]
        new = None if new is None else self.server.store.get("replicasets.apps", new.key)
        status = calculated(deployment, sets, new, moment)
        if progresses:
            status = with_progress(deployment, status, sets, new, moment, now)
        self.write_status(deployment, without_zeros(status, "terminatingReplicas"))
        deadline = progress_deadline(deployment)
        progress = condition_of({**deployment.fields, "status": status}, "Progressing")
        if deadline is None or progress is None or is_complete(deployment, status):
            return
        updated = unix_time(progress.get("lastUpdateTime"))
        if progress.get("reason") != "ProgressDeadlineExceeded" and updated is not None and progresses:
            self.plan_after(deployment.key, updated + deadline + 1 - now)

    def _note_pause(self, deployment: StoredObject) -> StoredObject:
        progress = condition_of(deployment.fields, "Progressing")
        reason = None if progress is None else progress.get("reason")
        if progress_deadline(deployment) is None or reason == "ProgressDeadlineExceeded":
            return deployment
        if deployment.fields["spec"].get("paused"):
            paused = condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
            return deployment if reason == "DeploymentPaused" else self._note(deployment, paused)
        if reason == "DeploymentPaused":
            resumed = condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
            return self._note(deployment, resumed)
        return deployment

    def _note(self, deployment: StoredObject, fresh: Json) -> StoredObject:
        status = status_of(deployment)
        conditions = set_condition(list(status.get("conditions") or ()), fresh, self.server.state.timestamp())
        self.write_status(deployment, {**status, "conditions": conditions})
        return self.stored(deployment.key) or deployment

    def _note_revision(
        self, deployment: StoredObject, revision: str, found: StoredObject | None = None
    ) -> StoredObject:
        if revision and annotations_of(deployment).get(REVISION) != revision:
            annotations = {**annotations_of(deployment), REVISION: revision}
            metadata = {**deployment.fields["metadata"], "annotations": annotations}
            deployment = write_fields(self.server.state, self.resource, deployment, metadata=metadata)
        lacks = progress_deadline(deployment) is not None and condition_of(deployment.fields, "Progressing") is None
        if found is not None and lacks:
            why = f'Found new replica set "{found.fields["metadata"]["name"]}"'
            deployment = self._note(deployment, condition("Progressing", "True", "FoundNewReplicaSet", why))
        return deployment


def _some(stored: StoredObject | None) -> list[StoredObject]:
    return [] if stored is None else [stored]


def _active(sets: list[StoredObject]) -> list[StoredObject]:
    return [one for one in sets if replicas_of(one) > 0]


def _without(fields: Json, name: str) -> Json:
    return {key: value for key, value in fields.items() if key != name}


def _revision(stored: StoredObject) -> int:
    return number_in(annotations_of(stored).get(REVISION)) or 0


def _sizes(deployment: StoredObject) -> Json:
    wanted = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + max_surge(deployment))}


def _is_saturated(deployment: StoredObject, new: StoredObject) -> bool:
    wanted = replicas_of(deployment)
    desired = number_in(annotations_of(new).get(DESIRED_REPLICAS))
    return bool(replicas_of(new) == wanted == desired == status_of(new).get("availableReplicas", 0))
