"""Who may use a resource claim: pods on their own, or all pods of a pod group."""

from collections.abc import Iterator

from trio_sched.documents.json_values import Json
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject

GROUP_API = "scheduling.k8s.io"


def group_of(pod: StoredObject) -> str:
    """The name of the pod group that the pod is in, "" if there is none."""
    return (pod.fields["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""


def is_group(consumer: Json) -> bool:
    """Whether an entry of ``status.reservedFor`` names a pod group."""
    return consumer.get("apiGroup") == GROUP_API and consumer.get("resource") == "podgroups"


def is_reserved_for(claim: StoredObject, pod: StoredObject) -> bool:
    """Whether the pod may use the claim, by itself or as a member of its group."""
    uid, group = pod.fields["metadata"]["uid"], group_of(pod)
    return any(
        one.get("uid") == uid or (group and is_group(one) and one.get("name") == group)
        for one in (claim.fields.get("status") or {}).get("reservedFor") or ()
    )


def claim_names(pod: StoredObject) -> Iterator[str | None]:
    """The claim of each entry of ``spec.resourceClaims``: None if none is needed, "" if it is not made yet."""
    made = (pod.fields.get("status") or {}).get("resourceClaimStatuses") or ()
    names = {one.get("name"): one.get("resourceClaimName") for one in made}
    for entry in pod.fields["spec"].get("resourceClaims") or ():
        yield entry.get("resourceClaimName") or names.get(entry.get("name"), "")


def pods_of(store: ObjectStore, claim: StoredObject, consumer: Json) -> Iterator[StoredObject]:
    """The pods that use the claim because of *consumer*, an entry of its ``status.reservedFor``."""
    namespace = claim.fields["metadata"]["namespace"]
    if not is_group(consumer):
        pod = store.get("pods", f"{namespace}/{consumer.get('name')}")
        if consumer.get("resource") == "pods" and pod and pod.fields["metadata"]["uid"] == consumer.get("uid"):
            yield pod
        return
    name = claim.fields["metadata"]["name"]
    for pod in list(store.collection("pods").objects.values()):
        is_member = pod.fields["metadata"]["namespace"] == namespace and group_of(pod) == consumer.get("name")
        if is_member and name in claim_names(pod):
            yield pod
