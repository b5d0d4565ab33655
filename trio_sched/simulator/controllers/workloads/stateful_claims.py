"""The volume claims of the pods of StatefulSets."""

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.workload_controller import WorkloadController, owner_reference
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.registry.lifecycle import create, write_fields
from trio_sched.simulator.storage.object_store import StoredObject, copied


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

    def keep_owners(self, stored: StoredObject, pod: StoredObject, *, condemned: bool) -> bool:
        """Give the claims of a pod the owners that the retention policy asks for; whether one had others.

        Args:
            stored: the set.
            pod: one of its pods.
            condemned: the set is too small for the pod.
        """
        state = self.controller.server.state
        claims, pods = state.types.core("persistentvolumeclaims"), state.types.core("pods")
        own = {
            reference["uid"]: reference
            for reference in (owner_reference(self.controller.resource, stored), owner_reference(pods, pod))
        }
        of_set, of_pod = own.values()
        scaled = self._retention(stored, "whenScaled") == "Delete" and condemned
        deleted = self._retention(stored, "whenDeleted") == "Delete" and not scaled
        changed = False
        for template in _templates(stored):
            key = f"{stored.fields['metadata']['namespace']}/{_claim_name(stored, template, _number_of(pod))}"
            claim = state.store.get(claims.collection, key)
            if claim is None:
                continue
            given = claim.fields["metadata"].get("ownerReferences") or []
            others = [one for one in given if one.get("uid") not in own]
            if any(_names_same(one, of_set) or _names_same(one, of_pod) for one in others):
                continue  # of a former set or pod: the garbage collector takes it
            if (scaled or deleted) and any(one.get("controller") for one in others):
                wanted = others
            else:
                wanted = [*others, *([of_set] if deleted else []), *([of_pod] if scaled else [])]
            if wanted != given:
                metadata = {**claim.fields["metadata"], "ownerReferences": wanted}
                if not wanted:
                    del metadata["ownerReferences"]
                write_fields(state, claims, claim, metadata=metadata)
                changed = True
        return changed

    def mounted(self, stored: StoredObject, pod: StoredObject) -> Json:
        """The spec of a pod with the volumes of its claims, which is its own unless it was adopted."""
        spec: Json = pod.fields["spec"]
        wanted, given = claim_volumes(stored, _number_of(pod)), list(spec.get("volumes") or ())
        if all(one in given for one in wanted):
            return spec
        return {**spec, "volumes": with_claims(given, wanted)}

    def _retention(self, stored: StoredObject, when: str) -> str:
        policy = stored.fields["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        return str(policy.get(when) or "Retain")


def with_claims(volumes: list[Json], of_claims: list[Json]) -> list[Json]:
    """*volumes* with those *of_claims*, which take the place of others of the same names."""
    names = {one["name"] for one in of_claims}
    return of_claims + [one for one in volumes if one.get("name") not in names]


def _number_of(pod: StoredObject) -> int:
    return int(pod.fields["metadata"]["name"].rpartition("-")[2])


def _names_same(reference: Json, other: Json) -> bool:
    return all(reference.get(part) == other[part] for part in ("apiVersion", "kind", "name"))
