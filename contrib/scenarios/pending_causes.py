"""Clusters with one pod each that is pending, and what has to be said of it: the cause, and words that name it."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

Json = dict[str, Any]

NAMESPACE = "default"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@frozen(kw_only=True)
class PendingCause:
    """One cluster."""

    name: str
    objects: Sequence[Json]
    pod: str = "asked"
    reasons: frozenset[str]
    """The codes of the cause."""
    words: tuple[str, ...]
    """They are in the first three lines."""
    remedy: str = ""
    """The beginning of the title of the first change; empty: none is shown."""


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "a", **more: Any) -> Json:
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
    container |= spec.pop("container", {})
    metadata: Json = {"name": name, "namespace": NAMESPACE, "labels": labels or {"app": name}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **({"nodeName": on} if on else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def claim(
    name: str, *, size: str = "1Gi", of_class: str | None = None, modes: Sequence[str] = ("ReadWriteOnce",)
) -> Json:
    spec: Json = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
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


def volume(name: str, of_claim: str, *, zones: Sequence[str] = (), mode: str = "ReadWriteOnce") -> Json:
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": [mode],
        "csi": {"driver": "disk.test", "volumeHandle": name},
        "storageClassName": "fast",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": of_claim},
    }
    if zones:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, provisioner: str = "disk.test", mode: str = "WaitForFirstConsumer", **more: Any) -> Json:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**head, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def device_class(name: str, expression: str = 'device.driver == "gpu.test"') -> Json:
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    return {**head, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def devices(on: str, *names: str, taints: Sequence[Json] = ()) -> Json:
    listed: list[Json] = [
        {"name": name, "attributes": {"model": {"string": "a100"}}, **({"taints": list(taints)} if taints else {})}
        for name in names
    ]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{on}-gpus"}}
    return {**head, "spec": {"driver": "gpu.test", "nodeName": on, "pool": pool, "devices": listed}}


def device_claim(name: str, of_class: str = "gpu", *, count: int = 1, selector: str = "") -> Json:
    exact: Json = {"deviceClassName": of_class, "count": count, "allocationMode": "ExactCount"}
    if selector:
        exact["selectors"] = [{"cel": {"expression": selector}}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {**head, "metadata": metadata, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exact}]}}}


def wants_devices(name: str) -> Json:
    return {
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
        "container": {"resources": {"claims": [{"name": "gpu"}]}},
    }


def being_deleted(one: Json, finalizer: str) -> Json:
    since = "2026-01-01T00:00:00Z"
    stored = {"uid": f"uid-{one['metadata']['name']}", "resourceVersion": "1", "creationTimestamp": since}
    return {**one, "metadata": {**one["metadata"], **stored, "deletionTimestamp": since, "finalizers": [finalizer]}}


def uses(name: str) -> list[Json]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def priority_class(name: str, value: int) -> Json:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def affinity(which: str, labels: Mapping[str, str], key: str) -> Json:
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": key}
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(*terms: Sequence[Json]) -> Json:
    listed = [{"matchExpressions": list(term)} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def spread(key: str, *, skew: int = 1, labels: Mapping[str, str], **more: Any) -> list[Json]:
    selector = {"labelSelector": {"matchLabels": dict(labels)}}
    return [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}]


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _cause(
    name: str, reasons: Sequence[str], words: Sequence[str], remedy: str, *objects: Json, **more: Any
) -> PendingCause:
    return PendingCause(
        name=name, objects=objects, reasons=frozenset(reasons), words=tuple(words), remedy=remedy, **more
    )


_BUSY = {"memory": "5Gi"}

CAUSES: Sequence[PendingCause] = (
    _cause(
        "memory",
        ["InsufficientMemory"],
        ["memory", "4.0Gi", "3.0Gi", "n1"],
        "request memory ≤ 3.0Gi",
        node("n1"),
        node("n2", memory="2Gi"),
        pod("running", requests=_BUSY, on="n1"),
        pod(requests={"memory": "4Gi"}),
    ),
    _cause(
        "CPU of every node is too small",
        ["InsufficientCPU"],
        ["cpu", "16", "even the largest", "4"],
        "request cpu ≤ 4",
        node("n1"),
        node("n2", cpu="2"),
        pod(requests={"cpu": "16"}),
    ),
    _cause(
        "CPU and memory together",
        ["InsufficientCPU", "InsufficientMemory"],
        ["cpu", "memory"],
        "request",
        node("n1"),
        pod("running", requests={"cpu": "3", "memory": "6Gi"}, on="n1"),
        pod(requests={"cpu": "2", "memory": "4Gi"}),
    ),
    _cause(
        "ephemeral storage",
        ["InsufficientEphemeralStorage"],
        ["ephemeral-storage", "20.0Gi"],
        "request ephemeral-storage ≤ 10.0Gi",
        node("n1", offers={"ephemeral-storage": "10Gi"}),
        pod(requests={"ephemeral-storage": "20Gi"}),
    ),
    _cause(
        "a resource that nobody offers",
        ["ResourceNotOffered"],
        ["nvidia.com/gpus", "1 offer nvidia.com/gpu"],
        "request nvidia.com/gpu instead",
        node("n1", offers={"nvidia.com/gpu": "4"}),
        node("n2"),
        pod(requests={"nvidia.com/gpus": "1"}),
    ),
    _cause(
        "an extended resource that is in use",
        ["InsufficientExtendedResource"],
        ["nvidia.com/gpu", "asks for 2"],
        "request nvidia.com/gpu ≤ 1",
        node("n1", offers={"nvidia.com/gpu": "4"}),
        node("n2"),
        pod("running", requests={"nvidia.com/gpu": "3"}, on="n1"),
        pod(requests={"nvidia.com/gpu": "2"}),
    ),
    _cause(
        "too many pods",
        ["TooManyPods"],
        ["as many pods as they may", "n1"],
        "delete default/running",
        node("n1", pods="1"),
        pod("running", on="n1"),
        pod(),
    ),
    _cause(
        "a taint",
        ["UntoleratedTaint"],
        ["dedicated=gpu", "n1"],
        "tolerate dedicated=gpu",
        node("n1", taints=[taint("dedicated", "gpu")]),
        pod(),
    ),
    _cause(
        "two taints of one node",
        ["UntoleratedTaint"],
        ["dedicated=gpu", "spot"],
        "tolerate",
        node("n1", taints=[taint("dedicated", "gpu"), taint("spot", effect="NoExecute")]),
        pod(),
    ),
    _cause(
        "a cordoned node",
        ["NodeCordoned"],
        ["cordoned", "n1"],
        "uncordon n1",
        node("n1", unschedulable=True),
        pod(),
    ),
    _cause(
        "a label that no node has",
        ["NodeSelectorMismatch"],
        ["disk=sdd", "disk=ssd"],
        "node selector disk=ssd instead of disk=sdd",
        node("n1", labels={"disk": "ssd"}),
        pod(nodeSelector={"disk": "sdd"}),
    ),
    _cause(
        "a label that no node has at all",
        ["NodeSelectorMismatch"],
        ["no node has the label disk"],
        "label n1 disk=ssd",
        node("n1"),
        pod(nodeSelector={"disk": "ssd"}),
    ),
    _cause(
        "GPUs that are all taken",
        ["InsufficientExtendedResource"],
        ["the most that is free is 0 (n2)", "1 node(s) offer it"],
        "delete default/running",
        node("n1"),
        node("n2", offers={"example.com/gpu": "1"}),
        pod("running", requests={"example.com/gpu": "1"}, on="n2"),
        pod(requests={"example.com/gpu": "1"}),
    ),
    _cause(
        "node affinity",
        ["NodeAffinityMismatch"],
        [ZONE, "c", "a (1)"],
        f"no node affinity {ZONE}=c",
        node("n1"),
        pod(affinity=node_affinity([{"key": ZONE, "operator": "In", "values": ["c"]}])),
    ),
    _cause(
        "node affinity with two terms",
        ["NodeAffinityMismatch"],
        ["node affinity", "none of its 2 terms"],
        "no required node affinity",
        node("n1"),
        pod(
            affinity=node_affinity(
                [{"key": "cores", "operator": "Gt", "values": ["8"]}], [{"key": "fast", "operator": "Exists"}]
            )
        ),
    ),
    _cause(
        "a host port",
        ["HostPortInUse"],
        ["8080/TCP", "default/running on n1"],
        "no host port 8080/TCP",
        node("n1"),
        pod("running", on="n1", container={"ports": [{"containerPort": 80, "hostPort": 8080}]}),
        pod(container={"ports": [{"containerPort": 80, "hostPort": 8080}]}),
    ),
    _cause(
        "spread over zones",
        ["NodeCordoned"],
        ["zone", "maxSkew 1", "cordoned"],
        "uncordon n2",
        node("n1"),
        node("n2", zone="b", unschedulable=True),
        pod("running", on="n1", labels={"app": "web"}),
        pod(labels={"app": "web"}, topologySpreadConstraints=spread(ZONE, labels={"app": "web"})),
    ),
    _cause(
        "spread over a key that no node has",
        ["TopologyKeyMissing"],
        ["topology.kubernetes.io/zones", "did you mean"],
        f"topology key {ZONE}",
        node("n1"),
        pod(topologySpreadConstraints=spread("topology.kubernetes.io/zones", labels={"app": "asked"})),
    ),
    _cause(
        "fewer domains than minDomains",
        ["TopologySpread"],
        ["minDomains 3"],
        "maxSkew 2 for zone",
        node("n1"),
        pod("running", on="n1", labels={"app": "web"}),
        pod(labels={"app": "web"}, topologySpreadConstraints=spread(ZONE, labels={"app": "web"}, minDomains=3)),
    ),
    _cause(
        "pod affinity to nothing",
        ["PodAffinityMismatch"],
        ["app=dbb", "app=db"],
        "pod affinity to app=db instead",
        node("n1"),
        pod("running", on="n1", labels={"app": "db"}),
        pod(affinity=affinity("podAffinity", {"app": "dbb"}, ZONE)),
    ),
    _cause(
        "pod affinity to pods on a full node",
        ["InsufficientMemory"],
        ["memory", "app=db"],
        "request memory ≤ 3.0Gi",
        node("n1"),
        node("n2", zone="b"),
        pod("running", on="n1", labels={"app": "db"}, requests=_BUSY),
        pod(requests={"memory": "4Gi"}, affinity=affinity("podAffinity", {"app": "db"}, ZONE)),
    ),
    _cause(
        "pod anti-affinity",
        ["PodAntiAffinityMismatch"],
        ["default/running (n1)", "app=web"],
        "no required pod anti-affinity",
        node("n1"),
        pod("running", on="n1", labels={"app": "web"}),
        pod(affinity=affinity("podAntiAffinity", {"app": "web"}, HOST)),
    ),
    _cause(
        "anti-affinity of a running pod in the zone",
        ["ExistingPodsAntiAffinity"],
        ["default/running (n1)", "zone"],
        "delete default/running",
        node("n1"),
        node("n2"),
        pod("running", on="n1", affinity=affinity("podAntiAffinity", {"app": "web"}, ZONE)),
        pod(labels={"app": "web"}),
    ),
    _cause(
        "a scheduling gate",
        ["SchedulingGated"],
        ["example.com/quota"],
        "remove the scheduling gate example.com/quota",
        node("n1"),
        pod(schedulingGates=[{"name": "example.com/quota"}]),
    ),
    _cause(
        "a gate and too much memory",
        ["SchedulingGated", "InsufficientMemory"],
        ["example.com/quota", "memory"],
        "remove the scheduling gate example.com/quota and request memory",
        node("n1"),
        pod(schedulingGates=[{"name": "example.com/quota"}], requests={"memory": "16Gi"}),
    ),
    _cause(
        "a scheduler that does not exist",
        ["UnknownScheduler"],
        ["default-schedular", "did you mean default-scheduler"],
        "scheduler default-scheduler",
        node("n1"),
        pod(schedulerName="default-schedular"),
    ),
    _cause(
        "a claim that does not exist",
        ["ClaimNotFound"],
        ["dta", "there is data"],
        "use the claim data",
        node("n1"),
        storage_class("fast"),
        claim("data", of_class="fast"),
        pod(volumes=uses("dta")),
    ),
    _cause(
        "a storage class that does not exist",
        ["StorageClassNotFound"],
        ["data", "fats", "fast"],
        "recreate the claim data with class fast",
        node("n1"),
        storage_class("fast"),
        claim("data", of_class="fats"),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a claim that nothing provisions",
        ["ClaimUnbound"],
        ["data", "disk.test", "slow"],
        "make a volume of 1Gi for the claim data",
        node("n1"),
        storage_class("slow", mode="Immediate"),
        claim("data", of_class="slow"),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a class without provisioner and no volume of its size",
        ["NoVolumeForClaim"],
        ["data", "local", "provisions nothing"],
        "make a volume of 5Gi for the claim data",
        node("n1"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        claim("data", size="5Gi", of_class="local"),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a volume in another zone",
        ["VolumeNodeAffinity"],
        ["disk-1", "b"],
        "a new, empty claim data",
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data", zones=["b"]),
        bound_claim("data", "disk-1"),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a ReadWriteOncePod claim in use",
        ["ClaimInUse"],
        ["data", "default/running (n1)"],
        "delete default/running",
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data", mode="ReadWriteOncePod"),
        bound_claim("data", "disk-1", modes=["ReadWriteOncePod"]),
        pod("running", on="n1", volumes=uses("data")),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a taint and too much memory",
        ["UntoleratedTaint", "InsufficientMemory"],
        ["dedicated=gpu", "memory"],
        "tolerate dedicated=gpu and request memory",
        node("n1", taints=[taint("dedicated", "gpu")]),
        pod("running", on="n1", requests=_BUSY),
        pod(requests={"memory": "4Gi"}),
    ),
    _cause(
        "three at once",
        ["UntoleratedTaint", "InsufficientMemory", "NodeSelectorMismatch"],
        ["dedicated=gpu", "memory", "disk=ssd"],
        "tolerate dedicated=gpu and label n1 disk=ssd and request memory",
        node("n1", taints=[taint("dedicated", "gpu")]),
        pod("running", on="n1", requests=_BUSY),
        pod(requests={"memory": "4Gi"}, nodeSelector={"disk": "ssd"}),
    ),
    _cause(
        "a device class that does not exist",
        ["DeviceClassNotFound"],
        ["device class gpus", "there is gpu"],
        "recreate the device claim asked: device class gpu",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked", "gpus"),
        pod(**wants_devices("asked")),
    ),
    _cause(
        "a selector that no device matches",
        ["NoDevices"],
        ["claim asked", "1 devices are of that class", "takes 0 of them"],
        "recreate the device claim asked: without the selector",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked", selector='device.attributes["gpu.test"].model == "h100"'),
        pod(**wants_devices("asked")),
    ),
    _cause(
        "more devices than a node has",
        ["NoDevices"],
        ["asks for 3 of class gpu", "2 are free"],
        "recreate the device claim asked: 2 devices",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0", "gpu-1"),
        device_claim("asked", count=3),
        pod(**wants_devices("asked")),
    ),
    _cause(
        "devices with a taint",
        ["NoDevices"],
        ["asked", "taints that it does not tolerate"],
        "recreate the device claim asked: tolerating broken",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0", taints=[taint("broken", effect="NoSchedule")]),
        device_claim("asked"),
        pod(**wants_devices("asked")),
    ),
    _cause(
        "a device claim that does not exist",
        ["ResourceClaimNotFound"],
        ["askd", "there is asked"],
        "use the device claim asked",
        node("n1"),
        device_class("gpu"),
        devices("n1", "gpu-0"),
        device_claim("asked"),
        pod(**wants_devices("askd")),
    ),
    _cause(
        "a claim that is being deleted",
        ["ClaimIsBeingDeleted"],
        ["data", "kubernetes.io/pvc-protection", "default/running"],
        "delete default/running and make a new, empty claim data",
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data"),
        being_deleted(bound_claim("data", "disk-1"), "kubernetes.io/pvc-protection"),
        pod("running", on="n1", volumes=uses("data")),
        pod(volumes=uses("data")),
    ),
    _cause(
        "a volume on a cordoned node",
        ["NodeCordoned"],
        ["cordoned", "n2", "disk-1"],
        "uncordon n2",
        node("n1"),
        node("n2", zone="b", unschedulable=True),
        storage_class("fast"),
        volume("disk-1", "data", zones=["b"]),
        bound_claim("data", "disk-1"),
        pod(volumes=uses("data")),
    ),
    _cause(
        "no nodes",
        ["NoNodes"],
        ["no nodes"],
        "",
        pod(),
    ),
)
