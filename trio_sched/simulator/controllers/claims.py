"""A simulated resource claim controller: makes claims from templates, and releases those that no pod needs any more.

Source: the resourceclaim controller of kube-controller-manager, and the garbage collector as far as claims of pods go.
"""

from collections.abc import Iterator
from typing import Any

import trio
from attrs import define, field, frozen

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.controllers.steps import Step, Steps
from trio_sched.simulator.kubelet import CLAIMS
from trio_sched.simulator.lifecycle import DeleteOptions, create, delete, write_fields
from trio_sched.simulator.object_store import Change, StoredObject
from trio_sched.simulator.status_errors import ApiError

Json = dict[str, Any]

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim: the entry of ``spec.resourceClaims`` that it was made for."""

_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_MAX_STEM = 57
"""Of generated names: five random characters and a hyphen follow."""


@frozen(kw_only=True)
class ClaimPace:
    """How fast the controller is.

    Attributes:
        react_seconds: from a change of a pod, a claim or a template to the reaction of the controller.
        retry_seconds: until it tries again to create a claim after a failure.
    """

    react_seconds: float = 0.1
    retry_seconds: float = 5.0


@define(eq=False)
class ClaimController:
    """Creates, releases and deletes the resource claims of a cluster's pods."""

    server: ApiServer
    pace: ClaimPace = field(factory=ClaimPace)
    _steps: Steps = field(factory=Steps, init=False)
    _claims_of_pod: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """UID of a pod → the claims that it owns, or that are reserved for it."""
    _without_template: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """Key of a template → pods that wait for it."""

    @property
    def is_busy(self) -> bool:
        """Whether steps are still to be taken."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller; never returns."""
        store = self.server.store
        claims, pods, templates = (store.collection(name) for name in (CLAIMS, "pods", _TEMPLATES))
        for claim in claims.objects.values():
            self._index(claim)
            self._plan(self._sync_claim, claim.key)
        for pod in pods.objects.values():
            self._plan_pod(pod)
        stops = [
            claims.listen(self._on_claim),
            pods.listen(self._on_pod),
            templates.listen(self._on_template),
        ]
        task_status.started()
        try:
            await self._steps.run()
        finally:
            for stop in stops:
                stop()

    def _plan(self, step: Step, key: str) -> None:
        self._steps.plan(step, key, self.pace.react_seconds)

    # --- changes ----------------------------------------------------------------------------------------------------

    def _index(self, claim: StoredObject) -> None:
        for uid in _uids_of_pods(claim):
            self._claims_of_pod.setdefault(uid, {})[claim.key] = None

    def _on_claim(self, change: Change) -> None:
        if change.previous is not None:
            for uid in _uids_of_pods(change.previous):
                left = self._claims_of_pod.get(uid, {})
                left.pop(change.previous.key, None)
                if not left:
                    self._claims_of_pod.pop(uid, None)
        if change.type == "DELETED":
            owner = _owner(change.current)
            if owner is not None:  # a pod that lost its claim gets another one
                self._plan(self._sync_pod, f"{change.current.fields['metadata']['namespace']}/{owner['name']}")
            return
        self._index(change.current)
        self._plan(self._sync_claim, change.current.key)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED" or is_done(change.current):
            for key in self._claims_of_pod.get(change.current.fields["metadata"]["uid"], ()):
                self._plan(self._sync_claim, key)
        else:
            self._plan_pod(change.current)

    def _plan_pod(self, pod: StoredObject) -> None:
        if pod.fields["spec"].get("resourceClaims"):
            self._plan(self._sync_pod, pod.key)

    def _on_template(self, change: Change) -> None:
        if change.type != "DELETED":
            for pod in self._without_template.pop(change.current.key, ()):
                self._plan(self._sync_pod, pod)

    # --- pods -------------------------------------------------------------------------------------------------------

    def _sync_pod(self, key: str) -> None:
        """Create the claims of a pod, and reserve those of a pod that has a node without the scheduler's doing."""
        pod = self.server.store.get("pods", key)
        if pod is None or is_done(pod) or "deletionTimestamp" in pod.fields["metadata"]:
            return
        known = _statuses(pod)
        made: dict[str, str] = {}
        for entry in pod.fields["spec"].get("resourceClaims") or ():
            template = entry.get("resourceClaimTemplateName")
            name = entry.get("name") or ""
            if not template or (name in known and self._is_served(pod, known[name])):
                continue
            claim = self._find_or_create(pod, name, template)
            if claim is None:
                return
            made[name] = claim.fields["metadata"]["name"]
        if made:
            kept = {n: claim_name for n, claim_name in known.items() if n not in made}
            statuses: list[Json] = [{"name": n} for n, claim_name in kept.items() if claim_name is None]
            named = {n: claim_name for n, claim_name in kept.items() if claim_name is not None} | made
            statuses += [{"name": n, "resourceClaimName": claim_name} for n, claim_name in named.items()]
            status = {**(pod.fields.get("status") or {}), "resourceClaimStatuses": statuses}
            pod = write_fields(self.server.state, self.server.state.types.core("pods"), pod, status=status)
        if pod.fields["spec"].get("nodeName"):
            self._reserve(pod)

    def _is_served(self, pod: StoredObject, claim_name: str | None) -> bool:
        if claim_name is None:
            return True
        claim = self.server.store.get(CLAIMS, f"{pod.fields['metadata']['namespace']}/{claim_name}")
        return claim is not None and _is_owned_by(claim, pod)

    def _find_or_create(self, pod: StoredObject, entry: str, template_name: str) -> StoredObject | None:
        metadata = pod.fields["metadata"]
        namespace = metadata["namespace"]
        for key in self._claims_of_pod.get(metadata["uid"], ()):
            claim = self.server.store.get(CLAIMS, key)
            if claim is None or not _is_owned_by(claim, pod) or "deletionTimestamp" in claim.fields["metadata"]:
                continue
            if (claim.fields["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == entry:
                return claim
        template = self.server.store.get(_TEMPLATES, f"{namespace}/{template_name}")
        if template is None:
            self._without_template.setdefault(f"{namespace}/{template_name}", {})[pod.key] = None
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            self._creation_failed(pod, entry, f'resource claim template "{template_name}": {missing}')
            return None
        try:
            fields = _claim_of_template(pod, entry, template)
            return create(self.server.state, self._type(), namespace, fields)
        except ApiError as refused:
            self._creation_failed(pod, entry, f"create ResourceClaim : {refused.message}")
            self._steps.plan(self._sync_pod, pod.key, self.pace.retry_seconds)
            return None

    def _creation_failed(self, pod: StoredObject, entry: str, why: str) -> None:
        state, metadata = self.server.state, pod.fields["metadata"]
        moment = state.timestamp()
        event = {
            "metadata": {"name": state.new_name(f"{metadata['name'][:40]}."), "namespace": metadata["namespace"]},
            "involvedObject": {
                "kind": "Pod",
                "apiVersion": "v1",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "type": "Warning",
            "reason": "FailedResourceClaimCreation",
            "message": f"PodResourceClaim {entry}: {why}",
            "source": {"component": "resource_claim"},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        create(state, state.types.core("events"), metadata["namespace"], event)

    def _reserve(self, pod: StoredObject) -> None:
        metadata = pod.fields["metadata"]
        for entry in pod.fields["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or _statuses(pod).get(entry.get("name") or "")
            claim = self.server.store.get(CLAIMS, f"{metadata['namespace']}/{name}")
            if claim is None or (entry.get("resourceClaimTemplateName") and not _is_owned_by(claim, pod)):
                continue
            status = claim.fields.get("status") or {}
            reserved = status.get("reservedFor") or []
            if "allocation" in status and all(one.get("uid") != metadata["uid"] for one in reserved):
                consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
                self._write(claim, status={**status, "reservedFor": [*reserved, consumer]})

    # --- claims -----------------------------------------------------------------------------------------------------

    def _sync_claim(self, key: str) -> None:
        """Drop reservations of pods that are done; deallocate and delete the claim once nobody needs it."""
        claim = self.server.store.get(CLAIMS, key)
        if claim is None:
            return
        status = claim.fields.get("status") or {}
        reserved = status.get("reservedFor") or []
        remaining = [one for one in reserved if self._still_needs(claim, one)]
        is_terminating = "deletionTimestamp" in claim.fields["metadata"]
        if len(remaining) < len(reserved):
            status = {**status, "reservedFor": remaining}
            if not remaining:
                status.pop("reservedFor")
                if FINALIZER in (claim.fields["metadata"].get("finalizers") or ()):
                    status.pop("allocation", None)
                    status.pop("devices", None)
            claim = self._write(claim, status=status)
        elif is_terminating and not remaining and "allocation" in status:
            status = {name: value for name, value in status.items() if name not in ("allocation", "devices")}
            claim = self._write(claim, status=status)
        if not remaining and "allocation" not in status and (is_terminating or reserved):
            self._remove_finalizer(claim)
            claim_left = self.server.store.get(CLAIMS, key)
            if claim_left is None:
                return
            claim = claim_left
        if not remaining and not is_terminating and self._lost_its_pod(claim):
            delete(self.server.state, self._type(), claim, DeleteOptions())

    def _still_needs(self, claim: StoredObject, consumer: Json) -> bool:
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return True
        pod = self.server.store.get("pods", f"{claim.fields['metadata']['namespace']}/{consumer.get('name')}")
        return pod is not None and pod.fields["metadata"]["uid"] == consumer.get("uid") and not is_done(pod)

    def _lost_its_pod(self, claim: StoredObject) -> bool:
        """Whether the claim was made for a pod that is gone, was replaced, or will not run any more."""
        owner = _owner(claim)
        if owner is None:
            return False
        pod = self.server.store.get("pods", f"{claim.fields['metadata']['namespace']}/{owner.get('name')}")
        return pod is None or pod.fields["metadata"]["uid"] != owner.get("uid") or is_done(pod)

    def _remove_finalizer(self, claim: StoredObject) -> None:
        metadata = dict(claim.fields["metadata"])
        if FINALIZER not in (metadata.get("finalizers") or ()):
            return
        metadata["finalizers"] = [one for one in metadata["finalizers"] if one != FINALIZER]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        claim = self._write(claim, metadata=metadata)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.server.store.delete(CLAIMS, claim)

    def _write(self, claim: StoredObject, **changes: Any) -> StoredObject:
        return write_fields(self.server.state, self._type(), claim, **changes)

    def _type(self) -> Any:
        resource = self.server.state.types.of_kind("resource.k8s.io/v1", "ResourceClaim")
        assert resource is not None  # a built-in type
        return resource


def is_done(pod: StoredObject) -> bool:
    """Whether the pod will not use its claims any more, or again."""
    fields = pod.fields
    if (fields.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    return "deletionTimestamp" in fields["metadata"] and not fields["spec"].get("nodeName")


def _statuses(pod: StoredObject) -> dict[str, str | None]:
    """Entry of ``spec.resourceClaims`` → the name of the claim that was made for it; None if it needs none."""
    listed = (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
    return {one.get("name") or "": one.get("resourceClaimName") for one in listed}


def _owner(claim: StoredObject) -> Json | None:
    """The pod that owns the claim, as an owner reference."""
    owners: list[Json] = claim.fields["metadata"].get("ownerReferences") or []
    return next((one for one in owners if one.get("kind") == "Pod" and one.get("controller")), None)


def _is_owned_by(claim: StoredObject, pod: StoredObject) -> bool:
    owner = _owner(claim)
    return owner is not None and owner.get("uid") == pod.fields["metadata"]["uid"]


def _uids_of_pods(claim: StoredObject) -> Iterator[str]:
    owner = _owner(claim)
    if owner is not None:
        yield owner.get("uid") or ""
    for consumer in (claim.fields.get("status") or {}).get("reservedFor") or ():
        if consumer.get("resource") == "pods":
            yield consumer.get("uid") or ""


def _claim_of_template(pod: StoredObject, entry: str, template: StoredObject) -> Json:
    metadata = pod.fields["metadata"]
    stem = f"{metadata['name']}-{entry}-"
    if len(stem) > _MAX_STEM:  # both parts are cut in proportion, so that something of each is left
        share = _MAX_STEM / len(stem)
        stem = f"{metadata['name'][: int(len(metadata['name']) * share)]}-{entry[: int(len(entry) * share)]}"
    spec = template.fields.get("spec") or {}
    wanted = spec.get("metadata") or {}
    made: Json = {
        "generateName": stem,
        "annotations": {**(wanted.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
        ],
    }
    if wanted.get("labels"):
        made["labels"] = dict(wanted["labels"])
    return {"metadata": made, "spec": dict(spec.get("spec") or {})}
