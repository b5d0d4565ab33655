"""A simulated resource claim controller: makes claims from templates, and releases those that nobody needs any more.

Claims are made for pods, and for pod groups, whose pods share them. Source: the resourceclaim controller of
kube-controller-manager, and the garbage collector as far as these claims go.
"""

from collections.abc import Iterator
from typing import Any

from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.pod_groups import GROUPS
from trio_sched.simulator.controllers.work_queue import Step
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.kubelets.claim_consumers import GROUP_API, group_of, is_group, is_reserved_for
from trio_sched.simulator.kubelets.kubelet import CLAIMS
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.lifecycle import DeleteOptions, create, delete, write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim: the entry of ``spec.resourceClaims`` that it was made for."""

_API_VERSIONS = {"Pod": "v1", "PodGroup": f"{GROUP_API}/v1alpha2"}
_COLLECTIONS = {"Pod": "pods", "PodGroup": GROUPS}
_TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
_MAX_STEM = 57
"""The longest stem of generated names: five random characters and a hyphen follow."""


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
class ClaimController(Controller):
    """Creates, releases and deletes the resource claims of a cluster's pods and pod groups."""

    pace: ClaimPace = field(factory=ClaimPace)
    _claims_of: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """UID of a pod or pod group → the claims that it owns, or that are reserved for it."""
    _without_template: dict[str, dict[tuple[Step, str], None]] = field(factory=dict, init=False)
    """Key of a template → the steps for pods and pod groups that wait for it."""
    _without_group: dict[str, dict[str, None]] = field(factory=dict, init=False)
    """Key of a pod group → pods that wait for it, or for its claims."""

    def start(self) -> None:
        """Look at claims, pods and pod groups; follow these and templates."""
        store = self.server.store
        for claim in store.collection(CLAIMS).objects.values():
            self._index(claim)
            self._plan(self._sync_claim, claim.key)
        for pod in store.collection("pods").objects.values():
            self._plan_pod(pod)
        for group in store.collection(GROUPS).objects.values():
            self._plan(self._sync_group, group.key)
        self.listen(CLAIMS, self._on_claim)
        self.listen("pods", self._on_pod)
        self.listen(_TEMPLATES, self._on_template)
        self.listen(GROUPS, self._on_group)

    def _plan(self, step: Step, key: str) -> None:
        self._steps.plan(step, key, self.pace.react_seconds)

    # --- changes ----------------------------------------------------------------------------------------------------

    def _index(self, claim: StoredObject) -> None:
        for uid in _uids_of(claim):
            self._claims_of.setdefault(uid, {})[claim.key] = None

    def _on_claim(self, change: Change) -> None:
        if change.previous is not None:
            for uid in _uids_of(change.previous):
                left = self._claims_of.get(uid, {})
                left.pop(change.previous.key, None)
                if not left:
                    self._claims_of.pop(uid, None)
        if change.type == "DELETED":
            owner = _owner(change.current)
            if owner is not None:  # who lost its claim gets another one
                step = self._sync_pod if owner["kind"] == "Pod" else self._sync_group
                self._plan(step, f"{change.current.fields['metadata']['namespace']}/{owner['name']}")
            return
        self._index(change.current)
        self._plan(self._sync_claim, change.current.key)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED" or is_done(change.current):
            self._plan_claims_of(change.current)
        else:
            self._plan_pod(change.current)

    def _on_group(self, change: Change) -> None:
        if change.type == "DELETED":
            self._plan_claims_of(change.current)
        else:
            self._plan(self._sync_group, change.current.key)

    def _plan_claims_of(self, owner: StoredObject) -> None:
        for key in self._claims_of.get(owner.fields["metadata"]["uid"], ()):
            self._plan(self._sync_claim, key)

    def _plan_pod(self, pod: StoredObject) -> None:
        if pod.fields["spec"].get("resourceClaims"):
            self._plan(self._sync_pod, pod.key)

    def _on_template(self, change: Change) -> None:
        if change.type != "DELETED":
            for step, key in self._without_template.pop(change.current.key, ()):
                self._plan(step, key)

    # --- pods and pod groups ----------------------------------------------------------------------------------------

    def _sync_pod(self, key: str) -> None:
        """Create the claims of a pod, and reserve those of a pod that has a node without the scheduler's doing."""
        pod = self.server.store.get("pods", key)
        if pod is None or is_done(pod) or "deletionTimestamp" in pod.fields["metadata"]:
            return
        group: StoredObject | None = None
        if group_of(pod):
            group_key = f"{pod.fields['metadata']['namespace']}/{group_of(pod)}"
            group = self.server.store.get(GROUPS, group_key)
            if group is None:
                self._without_group.setdefault(group_key, {})[key] = None
                return
        synced = self._make_claims("Pod", pod, group, self._sync_pod)
        if synced is not None and synced.fields["spec"].get("nodeName"):
            self._reserve(synced, group)

    def _sync_group(self, key: str) -> None:
        """Create the claims of a pod group; its pods have waited for them."""
        group = self.server.store.get(GROUPS, key)
        if group is None or "deletionTimestamp" in group.fields["metadata"]:
            return
        if self._make_claims("PodGroup", group, None, self._sync_group) is not None:
            for pod in self._without_group.pop(key, ()):
                self._plan(self._sync_pod, pod)

    def _make_claims(
        self, kind: str, owner: StoredObject, group: StoredObject | None, step: Step
    ) -> StoredObject | None:
        """Create the claims of a pod or pod group that are missing, and write which they are.

        Args:
            kind: ``Pod`` or ``PodGroup``.
            owner: for which they are.
            group: of a pod that is in one.
            step: to be taken again if one cannot be created now.

        Returns:
            *owner* as it is stored then; None if one was not created.
        """
        known, made = _statuses(owner), {}
        for entry in owner.fields["spec"].get("resourceClaims") or ():
            template, name = entry.get("resourceClaimTemplateName"), entry.get("name") or ""
            if not template or (name in known and self._is_served(owner, known[name], group)):
                continue
            if group is not None and _is_shared(entry, group):
                claim = self._find(group, name)
                if claim is None:
                    self._without_group.setdefault(group.key, {})[owner.key] = None
                    continue
            else:
                found = self._find(owner, name) or self._create(kind, owner, name, template, step)
                if found is None:
                    return None
                claim = found
            made[name] = claim.fields["metadata"]["name"]
        if not made:
            return owner
        kept = {n: claim_name for n, claim_name in known.items() if n not in made}
        statuses: list[Json] = [{"name": n} for n, claim_name in kept.items() if claim_name is None]
        named = {n: claim_name for n, claim_name in kept.items() if claim_name is not None} | made
        statuses += [{"name": n, "resourceClaimName": claim_name} for n, claim_name in named.items()]
        status = {**(owner.fields.get("status") or {}), "resourceClaimStatuses": statuses}
        resource = self.server.state.types.of_kind(_API_VERSIONS[kind], kind)
        assert resource is not None  # a built-in type
        return write_fields(self.server.state, resource, owner, status=status)

    def _is_served(self, owner: StoredObject, claim_name: str | None, group: StoredObject | None) -> bool:
        if claim_name is None:
            return True
        claim = self.server.store.get(CLAIMS, f"{owner.fields['metadata']['namespace']}/{claim_name}")
        return claim is not None and (_is_owned_by(claim, owner) or (group is not None and _is_owned_by(claim, group)))

    def _find(self, owner: StoredObject, entry: str) -> StoredObject | None:
        """The claim that was made for an entry of *owner*."""
        for key in self._claims_of.get(owner.fields["metadata"]["uid"], ()):
            claim = self.server.store.get(CLAIMS, key)
            if claim is None or not _is_owned_by(claim, owner) or "deletionTimestamp" in claim.fields["metadata"]:
                continue
            if (claim.fields["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == entry:
                return claim
        return None

    def _create(
        self, kind: str, owner: StoredObject, entry: str, template_name: str, step: Step
    ) -> StoredObject | None:
        namespace = owner.fields["metadata"]["namespace"]
        template = self.server.store.get(_TEMPLATES, f"{namespace}/{template_name}")
        if template is None:
            self._without_template.setdefault(f"{namespace}/{template_name}", {})[step, owner.key] = None
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            self._creation_failed(kind, owner, entry, f'resource claim template "{template_name}": {missing}')
            return None
        try:
            fields = _claim_of_template(kind, owner, entry, template)
            return create(self.server.state, self._type(), namespace, fields)
        except ApiError as refused:
            self._creation_failed(kind, owner, entry, f"create ResourceClaim : {refused.message}")
            self._steps.plan(step, owner.key, self.pace.retry_seconds)
            return None

    def _creation_failed(self, kind: str, owner: StoredObject, entry: str, why: str) -> None:
        state, metadata = self.server.state, owner.fields["metadata"]
        moment = state.timestamp()
        event = {
            "metadata": {"name": state.new_name(f"{metadata['name'][:40]}."), "namespace": metadata["namespace"]},
            "involvedObject": {
                "kind": kind,
                "apiVersion": _API_VERSIONS[kind],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "type": "Warning",
            "reason": "FailedResourceClaimCreation",
            "message": f"{kind}ResourceClaim {entry}: {why}",
            "source": {"component": "resource_claim"},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        create(state, state.types.core("events"), metadata["namespace"], event)

    def _reserve(self, pod: StoredObject, group: StoredObject | None) -> None:
        metadata = pod.fields["metadata"]
        for entry in pod.fields["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimName") or _statuses(pod).get(entry.get("name") or "")
            claim = self.server.store.get(CLAIMS, f"{metadata['namespace']}/{name}")
            if claim is None or (entry.get("resourceClaimTemplateName") and not self._is_served(pod, name, group)):
                continue
            status = claim.fields.get("status") or {}
            if "allocation" in status and not is_reserved_for(claim, pod):
                consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
                if group is not None and _is_shared(entry, group):
                    of_group = group.fields["metadata"]
                    consumer = {"apiGroup": GROUP_API, "resource": "podgroups"}
                    consumer |= {"name": of_group["name"], "uid": of_group["uid"]}
                self._write(claim, status={**status, "reservedFor": [*(status.get("reservedFor") or ()), consumer]})

    # --- claims -----------------------------------------------------------------------------------------------------

    def _sync_claim(self, key: str) -> None:
        """Drop reservations of who is done or gone; deallocate and delete the claim once nobody needs it."""
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
        if not remaining and not is_terminating and self._lost_its_owner(claim):
            delete(self.server.state, self._type(), claim, DeleteOptions())

    def _still_needs(self, claim: StoredObject, consumer: Json) -> bool:
        if is_group(consumer):
            return self._is_there(claim, "PodGroup", consumer)
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return True
        return self._is_there(claim, "Pod", consumer)

    def _lost_its_owner(self, claim: StoredObject) -> bool:
        """Whether the claim was made for who is gone or was replaced, or for a pod that will not run any more."""
        owner = _owner(claim)
        return owner is not None and not self._is_there(claim, owner["kind"], owner)

    def _is_there(self, claim: StoredObject, kind: str, one: Json) -> bool:
        key = f"{claim.fields['metadata']['namespace']}/{one.get('name')}"
        found = self.server.store.get(_COLLECTIONS[kind], key)
        if found is None or found.fields["metadata"]["uid"] != one.get("uid"):
            return False
        return kind != "Pod" or not is_done(found)

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
    if is_finished(fields):
        return True
    return "deletionTimestamp" in fields["metadata"] and not fields["spec"].get("nodeName")


def _statuses(owner: StoredObject) -> dict[str, str | None]:
    """Entry of ``spec.resourceClaims`` → the name of the claim that was made for it; None if it needs none."""
    listed = (owner.fields.get("status") or {}).get("resourceClaimStatuses") or ()
    return {one.get("name") or "": one.get("resourceClaimName") for one in listed}


def _is_shared(entry: Json, group: StoredObject) -> bool:
    """Whether the group of a pod has the same entry."""
    names = ("name", "resourceClaimName", "resourceClaimTemplateName")
    of_group = group.fields["spec"].get("resourceClaims") or ()
    return any(all(one.get(name) == entry.get(name) for name in names) for one in of_group)


def _owner(claim: StoredObject) -> Json | None:
    """The pod or pod group that owns the claim, as an owner reference."""
    owners: list[Json] = claim.fields["metadata"].get("ownerReferences") or []
    return next((one for one in owners if one.get("kind") in _COLLECTIONS and one.get("controller")), None)


def _is_owned_by(claim: StoredObject, owner: StoredObject) -> bool:
    found = _owner(claim)
    return found is not None and found.get("uid") == owner.fields["metadata"]["uid"]


def _uids_of(claim: StoredObject) -> Iterator[str]:
    """The UIDs of its owner, and of the pods and pod groups that it is reserved for."""
    owner = _owner(claim)
    if owner is not None:
        yield owner.get("uid") or ""
    for consumer in (claim.fields.get("status") or {}).get("reservedFor") or ():
        if consumer.get("resource") in ("pods", "podgroups"):
            yield consumer.get("uid") or ""


def _claim_of_template(kind: str, owner: StoredObject, entry: str, template: StoredObject) -> Json:
    metadata = owner.fields["metadata"]
    stem = f"{metadata['name']}-{entry}-"
    if len(stem) > _MAX_STEM:  # both parts are cut in proportion, so that something of each is left
        share = _MAX_STEM / len(stem)
        stem = f"{metadata['name'][: int(len(metadata['name']) * share)]}-{entry[: int(len(entry) * share)]}"
    spec = template.fields.get("spec") or {}
    wanted = spec.get("metadata") or {}
    reference = {"apiVersion": _API_VERSIONS[kind], "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}
    made: Json = {
        "generateName": stem,
        "annotations": {**(wanted.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [{**reference, "controller": True}],
    }
    if wanted.get("labels"):
        made["labels"] = dict(wanted["labels"])
    return {"metadata": made, "spec": dict(spec.get("spec") or {})}
