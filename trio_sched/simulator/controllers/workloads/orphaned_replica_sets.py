"""ReplicaSets that a dump left out: they are made again for the pods that name them.

Without them a Deployment would create all of its pods a second time.
"""

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.controllers.workloads.deployments import REVISION, TEMPLATE_HASH
from trio_sched.simulator.controllers.workloads.rollout_sizes import annotations_of, replicas_of
from trio_sched.simulator.controllers.workloads.workload_controller import owner_reference
from trio_sched.simulator.kubelets.pod_states import is_active
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject, copied
from trio_sched.simulator.storage.resource_types import ResourceType

_SETS = "replicasets.apps"


def restore_replica_sets(state: ClusterState) -> None:
    """Store a ReplicaSet for every uid that pods of a Deployment name, and that is not there."""
    groups: dict[str, dict[str, list[StoredObject]]] = {}
    """Namespace → uid of a missing ReplicaSet → its pods."""
    for pod in state.store.collection("pods").objects.values():
        owner = controller_of(pod.fields)
        if owner is None or owner.get("kind") != "ReplicaSet":
            continue
        namespace = pod.fields["metadata"]["namespace"]
        if state.store.get(_SETS, f"{namespace}/{owner.get('name')}") is None:
            groups.setdefault(namespace, {}).setdefault(owner.get("uid") or "", []).append(pod)
    resource = state.types.of_kind("apps/v1", "Deployment")
    assert resource is not None, "a built-in type"
    for namespace, missing in groups.items():
        for deployment in list(state.store.collection(resource.collection).in_order(namespace)):
            selector = deployment.fields["spec"].get("selector")
            mine = {
                uid: pods
                for uid, pods in missing.items()
                if matches_labels(selector, pods[0].fields["metadata"].get("labels") or {})
                and TEMPLATE_HASH in (pods[0].fields["metadata"].get("labels") or {})
            }
            _restore(state, resource, deployment, mine)
            for uid in mine:
                del missing[uid]


def _restore(
    state: ClusterState, resource: ResourceType, deployment: StoredObject, missing: dict[str, list[StoredObject]]
) -> None:
    by_age = sorted(missing.items(), key=lambda one: max(_created(pod) for pod in one[1]))
    newest = number_in(annotations_of(deployment).get(REVISION)) or len(by_age)
    for older, (uid, pods) in enumerate(reversed(by_age)):
        first = pods[0].fields
        owner, labels = controller_of(first) or {}, first["metadata"].get("labels") or {}
        template = copied(deployment.fields["spec"]["template"])
        if older:
            template = copied({"metadata": {"labels": labels}, "spec": {**first["spec"], "nodeName": ""}})
        digest = {TEMPLATE_HASH: labels[TEMPLATE_HASH]}
        given = template.get("metadata") or {}
        template["metadata"] = {**given, "labels": {**(given.get("labels") or {}), **digest}}
        selector = copied(deployment.fields["spec"]["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **digest}
        active = sum(is_active(pod.fields) for pod in pods)
        metadata: Json = {
            "name": owner.get("name"),
            "namespace": first["metadata"]["namespace"],
            "uid": uid,
            "creationTimestamp": min(_created(pod) for pod in pods),
            "generation": 1,
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {REVISION: str(max(newest - older, 1))},
            "ownerReferences": [owner_reference(resource, deployment)],
        }
        replicas = active if len(by_age) > 1 else replicas_of(deployment)
        fields = {"metadata": metadata, "spec": {"replicas": replicas, "selector": selector, "template": template}}
        state.store.create(_SETS, f"{metadata['namespace']}/{metadata['name']}", fields)


def _created(pod: StoredObject) -> str:
    return str(pod.fields["metadata"].get("creationTimestamp") or "")
