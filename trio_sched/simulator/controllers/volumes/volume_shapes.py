"""Claims and volumes as controllers and provisioners write them."""

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.storage.object_store import StoredObject

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ZONE = "topology.kubernetes.io/zone"

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def class_name(stored: StoredObject) -> str:
    """The storage class of a claim or a volume, "" if it has none."""
    return class_of(stored.fields)


def class_of(fields: Json) -> str:
    """The storage class of a claim or a volume with these *fields*, "" if it has none."""
    annotations = fields["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION, fields["spec"].get("storageClassName") or ""))


def is_bound_to(volume: StoredObject, claim: StoredObject) -> bool:
    """Whether the ``claimRef`` of *volume* is *claim*."""
    reference, metadata = volume.fields["spec"].get("claimRef") or {}, claim.fields["metadata"]
    return (
        reference.get("name") == metadata["name"]
        and reference.get("namespace") == metadata["namespace"]
        and reference.get("uid") in (None, "", metadata["uid"])
    )


def fits(volume: StoredObject, claim: StoredObject) -> bool:
    """Whether *volume* is large enough for *claim*, and has its access modes and volume mode."""
    spec, wanted = volume.fields["spec"], claim.fields["spec"]
    size = parse_nano(((wanted.get("resources") or {}).get("requests") or {}).get("storage", 0))
    return (
        parse_nano((spec.get("capacity") or {}).get("storage", 0)) >= size
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
    )


def reference_to(claim: StoredObject) -> Json:
    """The ``claimRef`` of a volume that belongs to *claim*."""
    metadata = claim.fields["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def bound_volume(volume: StoredObject, claim: StoredObject) -> tuple[Json, Json]:
    """Metadata and spec of *volume* once it is bound to *claim*."""
    metadata, spec = dict(volume.fields["metadata"]), dict(volume.fields["spec"])
    if not (spec.get("claimRef") or {}).get("uid"):
        if "claimRef" not in spec:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), BOUND_BY_CONTROLLER: "yes"}
        spec["claimRef"] = reference_to(claim)
    return metadata, spec


def bound_claim(claim: StoredObject, volume: StoredObject) -> Json:
    """Metadata, spec and status of *claim* once it is bound to *volume*."""
    metadata, spec = dict(claim.fields["metadata"]), dict(claim.fields["spec"])
    annotations = {**(metadata.get("annotations") or {}), BIND_COMPLETED: "yes"}
    if not spec.get("volumeName"):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    metadata["annotations"] = annotations
    spec["volumeName"] = volume.key
    status = {
        "phase": "Bound",
        "accessModes": volume.fields["spec"].get("accessModes") or [],
        "capacity": volume.fields["spec"].get("capacity") or {},
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def _source(provisioner: str, name: str) -> Json:
    """Where a new volume lies; only names without a slash can be those of CSI drivers."""
    if "/" in provisioner:
        return {"hostPath": {"path": f"/simulated/{name}"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}


def new_volume(claim: StoredObject, storage_class: StoredObject, node: StoredObject | None) -> Json:
    """The volume that a provisioner creates for *claim*, in the zone of *node* if one has been selected."""
    metadata, spec = claim.fields["metadata"], claim.fields["spec"]
    driver = storage_class.fields["provisioner"]
    name = f"pvc-{metadata['uid']}"
    fields: Json = {
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
        "spec": {
            "capacity": dict((spec.get("resources") or {}).get("requests") or {}),
            "accessModes": list(spec.get("accessModes") or ()),
            "claimRef": reference_to(claim),
            **_source(driver, name),
            "persistentVolumeReclaimPolicy": storage_class.fields.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class.key,
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        },
    }
    terms = _topology(storage_class, node)
    if terms:
        fields["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return fields


def _topology(storage_class: StoredObject, node: StoredObject | None) -> list[Json]:
    """Node selector terms for a new volume: the node's zone, or anywhere that the class allows."""
    if node is not None:
        zone = (node.fields["metadata"].get("labels") or {}).get(ZONE)
        return [{"matchExpressions": [_one_of(ZONE, [zone])]}] if zone else []
    return [
        {"matchExpressions": [_one_of(one["key"], one.get("values") or []) for one in term["matchLabelExpressions"]]}
        for term in storage_class.fields.get("allowedTopologies") or ()
        if term.get("matchLabelExpressions")
    ]


def _one_of(key: str, values: list[str]) -> Json:
    return {"key": key, "operator": "In", "values": values}


def ephemeral_claim(pod: StoredObject, volume: Json) -> Json:
    """The claim behind an ephemeral *volume* of *pod*, which owns it."""
    template, metadata = volume["ephemeral"].get("volumeClaimTemplate") or {}, pod.fields["metadata"]
    given = template.get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    own: Json = {"name": f"{metadata['name']}-{volume['name']}", "ownerReferences": [owner]}
    own.update({name: dict(given[name]) for name in ("labels", "annotations") if given.get(name)})
    return {"metadata": own, "spec": dict(template.get("spec") or {})}
