"""The volume claims of the pods of StatefulSets."""

from typing import Any

from attrs import define

from trio_sched.simulator.controllers.workload_controller import WorkloadController, owner_reference
from trio_sched.simulator.lifecycle import create, write_fields
from trio_sched.simulator.object_store import StoredObject, copied
from trio_sched.simulator.status_errors import ApiError

Json = dict[str, Any]


def _claim_name(stored: StoredObject, template: Json, number: int) -> str:
    return f"{template['metadata']['name']}-{stored.fields['metadata']['name']}-{number}"


def _templates(stored: StoredObject) -> list[Json]:
    return list(stored.fields["spec"].get("volumeClaimTemplates") or ())


def claim_volumes(stored: StoredObject, number: int) -> list[Json]:
    """The volumes of a pod that are claims made for it."""
    return [
        {
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": _claim_name(stored, template, number)},
        }
        for template in _templates(stored)
    ]


@define(eq=False)
class StatefulClaims:
    """Creates the claims, and says what becomes of them."""

    controller: WorkloadController

    def create_missing(self, stored: StoredObject, number: int) -> None:
        """Create the claims of a pod that do not exist.

        Raises:
            ApiError: one is refused.
        """
        state = self.controller.server.state
        claims = state.types.core("persistentvolumeclaims")
        metadata = stored.fields["metadata"]
        for template in _templates(stored):
            name = _claim_name(stored, template, number)
            if state.store.get(claims.collection, f"{metadata['namespace']}/{name}") is not None:
                continue
            given = template["metadata"]
            made: Json = {part: given[part] for part in ("annotations", "finalizers") if given.get(part)}
            selected = (stored.fields["spec"].get("selector") or {}).get("matchLabels") or {}
            labels = {**(given.get("labels") or {}), **selected}
            made |= {"name": name} | ({"labels": labels} if labels else {})
            if self._retention(stored, "whenDeleted") == "Delete":
                made["ownerReferences"] = [owner_reference(self.controller.resource, stored)]
            fields = copied({"metadata": made, "spec": template.get("spec") or {}})
            owner = metadata["name"]
            try:
                create(state, claims, metadata["namespace"], fields)
            except ApiError as error:
                what = f"Create Claim {name} for Pod {owner}-{number} in StatefulSet {owner}"
                self.controller.warn(stored, "FailedCreate", f"{what} failed error: {error.message}")
                raise
            what = f"Create Claim {name} Pod {owner}-{number} in StatefulSet {owner}"
            self.controller.tell(stored, "SuccessfulCreate", f"{what} success")

    def condemn(self, stored: StoredObject, pod: StoredObject) -> None:
        """Let the claims of a pod go with it when the set is scaled down, if its policy says so."""
        if self._retention(stored, "whenScaled") != "Delete":
            return
        state = self.controller.server.state
        claims = state.types.core("persistentvolumeclaims")
        number = int(pod.fields["metadata"]["name"].rpartition("-")[2])
        owner = owner_reference(state.types.core("pods"), pod)
        for template in _templates(stored):
            key = f"{stored.fields['metadata']['namespace']}/{_claim_name(stored, template, number)}"
            claim = state.store.get(claims.collection, key)
            if claim is not None:
                metadata = {**claim.fields["metadata"], "ownerReferences": [owner]}
                write_fields(state, claims, claim, metadata=metadata)

    def _retention(self, stored: StoredObject, when: str) -> str:
        policy = stored.fields["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        return str(policy.get(when) or "Retain")
