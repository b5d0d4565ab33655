"""Kubernetes objects as plain manifests, with the fields only that a scenario is about."""

from collections.abc import Mapping, Sequence
from typing import Any

from trio_sched.documents.json_values import Json

NAMESPACE = "default"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str | None = "a", **more: Any) -> Json:
    amounts = {"cpu": cpu, "memory": memory, "pods": more.pop("pods", "110"), **more.pop("offers", {})}
    labels = {HOST: name, ZONE: zone, **more.pop("labels", {})}
    labels = {key: value for key, value in labels.items() if value is not None}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": conditions}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": status,
    }


def pod(
    name: str = "asked", *, requests: Json | None = None, on: str = "", labels: Json | None = None, **spec: Any
) -> Json:
    container: Json = {"name": "app", "image": "registry.test/app:1", "resources": {"requests": requests or {}}}
    limits = {key: value for key, value in (requests or {}).items() if "/" in key}
    if limits:
        container["resources"]["limits"] = limits
    more = spec.pop("container", {})
    container |= {**more, "resources": {**container["resources"], **more.get("resources", {})}}
    metadata: Json = {"name": name, "namespace": NAMESPACE, "labels": labels or {"app": name}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **({"nodeName": on} if on else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(name: str, on: Sequence[str], **of_pod: Any) -> list[Json]:
    """A Deployment with a pod on each of these nodes, pending where it is empty, and what stands between them."""
    labels = {"app": name, "pod-template-hash": "abc"}
    template = pod("", labels={"app": name}, **of_pod)
    spec = {
        "replicas": len(on),
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]},
    }
    metadata = {"namespace": NAMESPACE, "uid": f"uid-{name}"}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**metadata, "name": name}, "spec": spec}
    between = {**made, "kind": "ReplicaSet", "metadata": {**metadata, "name": f"{name}-abc", "uid": f"uid-{name}-abc"}}
    pods = [pod(f"{name}-abc-{number}", on=node_name, labels=labels, **of_pod) for number, node_name in enumerate(on)]
    return [made, _of(made, between), *(_of(between, one) for one in pods)]


def _of(owner: Json, one: Json) -> Json:
    """*one* with *owner* as its controller."""
    reference = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return {**one, "metadata": {**one["metadata"], "ownerReferences": [reference]}}


def claim(
    name: str,
    *,
    size: str = "1Gi",
    of_class: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    of_volume: str = "",
) -> Json:
    spec: Json = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    if of_volume:
        spec["volumeName"] = of_volume
    if of_class is not None:
        spec["storageClassName"] = of_class
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def bound_claim(name: str, volume: str, **more: Any) -> Json:
    made = claim(name, of_class="fast", **more)
    made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    made["spec"]["volumeName"] = volume
    made["status"] = {"phase": "Bound", "accessModes": made["spec"]["accessModes"], "capacity": {"storage": "1Gi"}}
    return made


def volume(
    name: str,
    of_claim: str = "",
    *,
    zones: Sequence[str] = (),
    mode: str = "ReadWriteOnce",
    of_class: str = "fast",
    size: str = "1Gi",
) -> Json:
    spec: Json = {
        "capacity": {"storage": size},
        "accessModes": [mode],
        "csi": {"driver": "disk.test", "volumeHandle": name},
        "storageClassName": of_class,
    }
    status = {"phase": "Bound" if of_claim else "Available"}
    if of_claim:
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": of_claim}
        spec["claimRef"] = reference
    if zones:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    head = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    return {**head, "spec": spec, "status": status}


def released(one: Json) -> Json:
    """A volume whose claim is gone."""
    claimed = {**one["spec"]["claimRef"], "uid": "gone"}
    return {**one, "spec": {**one["spec"], "claimRef": claimed}, "status": {"phase": "Released"}}


def kept_for(one: Json, namespace: str, name: str) -> Json:
    """A volume that waits for a claim."""
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    return {**one, "spec": {**one["spec"], "claimRef": reference}}


def labelled(one: Json, **labels: str) -> Json:
    return {**one, "metadata": {**one["metadata"], "labels": labels}}


def selecting(one: Json, **labels: str) -> Json:
    """A claim of volumes with these labels."""
    return {**one, "spec": {**one["spec"], "selector": {"matchLabels": labels}}}


def storage_class(name: str, provisioner: str = "disk.test", mode: str = "WaitForFirstConsumer", **more: Any) -> Json:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def csi_driver(name: str) -> Json:
    """A driver that says how much storage it has."""
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}}
    return {**head, "spec": {"storageCapacity": True}}


def storage_capacity(name: str, of_class: str, zone: str, size: str) -> Json:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity"}
    metadata, labels = {"name": name, "namespace": NAMESPACE}, {"matchLabels": {ZONE: zone}}
    return {**head, "metadata": metadata, "storageClassName": of_class, "capacity": size, "nodeTopology": labels}


def csi_node(name: str, driver: str, count: int) -> Json:
    drivers = [{"name": driver, "nodeID": name, "topologyKeys": [], "allocatable": {"count": count}}]
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
    return {**head, "spec": {"drivers": drivers}}


def device_class(name: str, expression: str = 'device.driver == "gpu.test"') -> Json:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    return {**head, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def devices(on: str, *names: str, taints: Sequence[Json] = (), attribute: str = "model") -> Json:
    listed: list[Json] = [
        {"name": name, "attributes": {attribute: {"string": "a100"}}, **({"taints": list(taints)} if taints else {})}
        for name in names
    ]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{on}-gpus"}}
    return {**head, "spec": {"driver": "gpu.test", "nodeName": on, "pool": pool, "devices": listed}}


def device_claim(
    name: str,
    of_class: str = "gpu",
    *,
    count: int = 1,
    selector: str = "",
    same: str = "",
    alternatives: Sequence[tuple[str, int]] = (),
) -> Json:
    exact: Json = {"deviceClassName": of_class, "count": count, "allocationMode": "ExactCount"}
    if selector:
        exact["selectors"] = [{"cel": {"expression": selector}}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    metadata = {"name": name, "namespace": NAMESPACE}
    request: Json = {"name": "gpu", "exactly": exact}
    if alternatives:
        listed = [
            {"name": f"of-{one}", "deviceClassName": one, "count": number, "allocationMode": "ExactCount"}
            for one, number in alternatives
        ]
        request = {"name": "gpu", "firstAvailable": listed}
    devices: Json = {"requests": [request]}
    if same:
        devices["constraints"] = [{"requests": ["gpu"], "matchAttribute": same}]
    return {**head, "metadata": metadata, "spec": {"devices": devices}}


def wants_devices(name: str) -> Json:
    return {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        "container": {"resources": {"claims": [{"name": "gpu"}]}},
    }


def device_claim_template(name: str) -> Json:
    """From which claims for a device are made."""
    made = device_claim(name)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def wants_template(name: str) -> Json:
    return {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
        "container": {"resources": {"claims": [{"name": "gpu"}]}},
    }


SINCE = "2026-01-01T00:00:00Z"


def being_deleted(one: Json, finalizer: str) -> Json:
    stored = as_stored(one)
    return {**stored, "metadata": {**stored["metadata"], "deletionTimestamp": SINCE, "finalizers": [finalizer]}}


def as_stored(one: Json) -> Json:
    """*one* as it is read from an API server, with what that adds."""
    added = {"uid": f"uid-{one['metadata']['name']}", "resourceVersion": "1", "creationTimestamp": SINCE}
    return {**one, "metadata": {**one["metadata"], **added}}


def chosen(one: Json, on: str) -> Json:
    """A claim for which a scheduler has chosen a node, where its volume is to be made."""
    return {**one, "metadata": {**one["metadata"], "annotations": {"volume.kubernetes.io/selected-node": on}}}


def uses(name: str) -> list[Json]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def priority_class(name: str, value: int, **more: Any) -> Json:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value, **more}


def runtime_class(name: str, selector: Mapping[str, str]) -> Json:
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
    return {**head, "scheduling": {"nodeSelector": dict(selector)}}


def of_stateful_set(one: Json, name: str) -> Json:
    """A pod, as a StatefulSet makes it."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name, "controller": True}
    return {**one, "metadata": {**one["metadata"], "ownerReferences": [owner]}}


def limit_range(name: str, **limits: Json) -> Json:
    """What containers may request: ``min``, ``maxLimitRequestRatio`` and the like."""
    head = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name, "namespace": NAMESPACE}}
    return {**head, "spec": {"limits": [{"type": "Container", **limits}]}}


def affinity(which: str, labels: Mapping[str, str], key: str, *, also: Json | None = None, **more: Any) -> Json:
    terms = [{"labelSelector": {"matchLabels": dict(one)}, "topologyKey": key, **more} for one in (labels, also) if one]
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def node_affinity(*terms: Sequence[Json]) -> Json:
    listed = [{"matchExpressions": list(term)} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def spread(key: str, *, skew: int = 1, labels: Mapping[str, str], **more: Any) -> list[Json]:
    selector = {"labelSelector": {"matchLabels": dict(labels)}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}]


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
