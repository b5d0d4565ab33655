"""What comes and goes on a real API server: each wave is a namespace with pods of every kind, and a node."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from attrs import frozen

from trio_sched.documents.json_values import Json

STANDING_NODES = 40
TIGHT_NODES = 4
"""With room for one pod each: here pods are preempted."""
LARGE_BYTES = 200 * 1024
"""The size of an annotation; the API server takes 256 KiB."""
DRIVER = "soak.example.com"
HOSTNAME = "kubernetes.io/hostname"
GATES = "GenericWorkload=true,GangScheduling=true"
API_SERVER_FLAGS = (
    f"--feature-gates={GATES}",
    "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    "--event-ttl=10m",
)
SCHEDULER_FLAGS = (f"--feature-gates={GATES}",)

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICES = "/apis/resource.k8s.io/v1"


@frozen
class Item:
    """An object to create: where, and its manifest."""

    collection: str
    manifest: Json

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{self.collection}/{self.manifest['metadata']['name']}"

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod."""
        return self.collection.endswith("/pods")


def standing_objects() -> Iterator[Item]:
    """What is there from the beginning to the end."""
    for name, value in (("soak-low", -10), ("soak-high", 1000)):
        yield Item(CLASSES, {"metadata": {"name": name}, "value": value})
    yield Item(f"{DEVICES}/deviceclasses", {"metadata": {"name": DRIVER}, "spec": {}})
    for number in range(STANDING_NODES):
        name = f"standing-{number}"
        yield _node(name, cpu="64", labels={"soak.test/kind": "standing"})
        devices = [{"name": f"d{n}", "attributes": {"model": {"string": "a"}}} for n in range(8)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"nodeName": name, "driver": DRIVER, "pool": pool, "devices": devices}
        yield Item(f"{DEVICES}/resourceslices", {"metadata": {"name": name}, "spec": spec})
    for number in range(TIGHT_NODES):
        yield _node(f"tight-{number}", cpu="1", labels={"soak.test/kind": "tight"})


def _node(name: str, *, cpu: str, labels: Json) -> Item:
    amounts = {"cpu": cpu, "memory": "256Gi", "pods": "500"}
    status = {"allocatable": amounts, "capacity": amounts}
    return Item("/api/v1/nodes", {"metadata": {"name": name, "labels": {HOSTNAME: name, **labels}}, "status": status})


def namespace_of(wave: int) -> Item:
    """The namespace of a wave."""
    name = f"wave-{wave}"
    return Item("/api/v1/namespaces", {"metadata": {"name": name, "labels": {f"soak.test/{name}": "x"}}})


def node_of(wave: int) -> Item:
    """The node of a wave, with labels that no other has."""
    return _node(f"wave-{wave}", cpu="16", labels={"soak.test/kind": "wave", f"soak.test/wave-{wave}": "x"})


def objects_of(wave: int, second: int, pods: int, rng: Random) -> Iterator[Item]:
    """What is created in one second of a wave, so many *pods* and what they need."""
    namespace = f"wave-{wave}"
    core = f"/api/v1/namespaces/{namespace}"
    for number in range(pods):
        unique = f"{wave}-{second}-{number}"
        spec: Json = {"nodeSelector": {"soak.test/kind": "standing"}}
        labels = {"app": f"app-{number}", f"soak.test/label-{unique}": "x"}
        cpu, annotations = rng.choice(("10m", "50m", "100m")), {"soak.test/small": "x" * rng.randrange(1000)}
        match number % 20:
            case 0:
                annotations["soak.test/large"] = unique + "x" * LARGE_BYTES
            case 1:
                spec["nodeSelector"] = {f"soak.test/wave-{wave}": "x"}
            case 2 | 3:
                spec["affinity"] = _affinity(labels, namespace, required=number % 20 == 2)
            case 4 | 5:
                spec["topologySpreadConstraints"] = _spread(labels, required=number % 20 == 4)
            case 6:
                spec["nodeSelector"] = {f"soak.test/nowhere-{unique}": "x"}
            case 7:
                cpu, annotations["soak.test/large"] = "1000", unique + "x" * LARGE_BYTES
            case 8:
                yield from _claimed_volume(namespace, unique)
                spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": unique}}]
            case 9:
                spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"missing-{unique}"}}]
            case 10:
                yield _claim(namespace, unique)
                spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": unique}]
            case 11 | 12:
                group = f"gang-{wave}-{second}"
                if number % 20 == 11:
                    yield _group(namespace, group, min_count=2)
                spec["schedulingGroup"] = {"podGroupName": group}
            case 13:
                yield _group(namespace, f"few-{unique}", min_count=2)
                spec["schedulingGroup"] = {"podGroupName": f"few-{unique}"}
            case 14 | 15:
                cpu, spec["nodeSelector"] = "1", {"soak.test/kind": "tight"}
                spec["priorityClassName"] = "soak-low" if number % 20 == 14 else "soak-high"
        yield Item(f"{core}/pods", _pod(unique, labels, annotations, cpu, spec))


def _pod(name: str, labels: Json, annotations: Json, cpu: str, spec: Json) -> Json:
    container = {"name": "main", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": f"pod-{name}", "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}}


def _affinity(labels: Json, namespace: str, *, required: bool) -> Json:
    selector = {"matchLabels": {"app": labels["app"]}}
    if required:
        term = {"labelSelector": selector, "topologyKey": HOSTNAME}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    namespaces = {"matchLabels": {f"soak.test/{namespace}": "x"}}
    term = {"labelSelector": selector, "topologyKey": "soak.test/kind", "namespaceSelector": namespaces}
    weighted = {"weight": 5, "podAffinityTerm": term}
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _spread(labels: Json, *, required: bool) -> list[Json]:
    how = "DoNotSchedule" if required else "ScheduleAnyway"
    selector = {"matchLabels": {"app": labels["app"]}}
    return [{"maxSkew": 5, "topologyKey": HOSTNAME, "whenUnsatisfiable": how, "labelSelector": selector}]


def _claimed_volume(namespace: str, name: str) -> Iterator[Item]:
    """A claim and its volume, bound to each other as the volume controller does it."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    reference = {"namespace": namespace, "name": name, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    volume = {"capacity": size, "accessModes": modes, "claimRef": reference, "hostPath": {"path": "/tmp"}}
    yield Item("/api/v1/persistentvolumes", {"metadata": {"name": f"volume-{name}"}, "spec": volume})
    metadata = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {"accessModes": modes, "resources": {"requests": size}, "volumeName": f"volume-{name}"}
    claim["storageClassName"] = ""
    yield Item(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {"metadata": metadata, "spec": claim})


def _claim(namespace: str, name: str) -> Item:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    spec = {"devices": {"requests": [request]}}
    return Item(f"{DEVICES}/namespaces/{namespace}/resourceclaims", {"metadata": {"name": name}, "spec": spec})


def _group(namespace: str, name: str, *, min_count: int) -> Item:
    collection = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups"
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    return Item(collection, {"metadata": {"name": name}, "spec": spec})
