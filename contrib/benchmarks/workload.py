"""Nodes and pods to measure with, as a server would send them."""

from collections.abc import Callable
from typing import Any

GIB = 1 << 30
APPS = 20
VICTIMS_PER_NODE = 4
NODE_SIZES = {"large": ("32", "256Gi"), "small": ("4", "32Gi")}
PRIORITY_CLASS: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "important"},
    "value": 1_000,
}
_CONDITIONS = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}


def node_name(i: int) -> str:
    """The name of node number *i*."""
    return f"node-{i:05}"


def node(i: int, size: str = "large") -> dict[str, Any]:
    """Node number *i*: in one of three zones and pools, each tenth with a taint that pods should avoid."""
    cpu, memory = NODE_SIZES[size]
    allocatable = {"cpu": cpu, "memory": memory, "ephemeral-storage": "500Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node_name(i),
            "labels": {
                "kubernetes.io/hostname": node_name(i),
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "r",
                "topology.kubernetes.io/zone": f"zone-{i % 3}",
                "pool": ("general", "memory", "edge")[i % 7 % 3],
            },
        },
        "spec": {"taints": [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]} if i % 10 == 9 else {},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": type_, "status": status} for type_, status in _CONDITIONS.items()],
            "images": [{"names": [f"registry.test/app-{i % 20}:1"], "sizeBytes": 200_000_000 + i % 20 * 50_000_000}],
        },
    }


def pod(i: int, shape: int = 0, *, mixed: bool = False) -> dict[str, Any]:
    """Pod number *i*; pods of one *shape* have equal specs and labels, *mixed* ones have various constraints."""
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "main",
                "image": f"registry.test/app-{shape % 20}:1",
                "resources": {"requests": {"cpu": f"{50 + shape}m", "memory": "64Mi"}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            }
        ],
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
        ],
    }
    if mixed:
        match shape % 5:
            case 0:
                spec["nodeSelector"] = {"pool": "memory"}
            case 1:
                term = {
                    "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]}]
                }
                preferred = [{"weight": 10, "preference": term}]
                spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
            case 2:
                spec["tolerations"].append({"key": "spot", "operator": "Exists"})
            case 3:
                spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 10_000 + shape}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{i:06}",
            "namespace": "default",
            "uid": f"uid-{i:06}",
            "labels": {"app": f"app-{shape}", "pod-template-hash": "5d9c7b"},
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


CONSTRAINTS = ("plain", "spread", "zone-spread", "affinity", "host-anti-affinity", "preferred-affinity", "mixed")
_MIXED = ("plain", "spread", "host-anti-affinity", "preferred-affinity")


def constrained_pod(i: int, app: int, constraint: str) -> dict[str, Any]:
    """Pod number *i* of one of twenty apps, constrained by other pods as *constraint* says.

    ``mixed`` takes turns: every fifth app is constrained by labels and ports of nodes, the others by other pods.
    """
    if constraint == "mixed":
        if app % 5 == 4:
            made = pod(i, app // 5, mixed=True)
            made["metadata"]["labels"]["app"] = f"app-{app}"
            return made
        constraint = _MIXED[app % 5]
    made = pod(i, app)
    own = {"matchLabels": {"app": f"app-{app}"}}
    other = {"matchLabels": {"app": f"app-{(app + 1) % APPS}"}}
    anti_affinity_terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": own}]
    affinity_term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": other}
    affinity: dict[str, Any] = {}
    if constraint in ("affinity", "host-anti-affinity"):
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": anti_affinity_terms}
    if constraint in ("affinity", "preferred-affinity"):
        preferred = [{"weight": 50, "podAffinityTerm": affinity_term}]
        affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if affinity:
        made["spec"]["affinity"] = affinity
    spread = {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread_softly = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    constraints = {"zone-spread": [spread], "spread": [spread, spread_softly]}.get(constraint)
    if constraints:
        made["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, **one, "labelSelector": own} for one in constraints]
    return made


def big_pod(i: int, priority: int) -> dict[str, Any]:
    """A pod of which four fill a node."""
    made = pod(i)
    made["spec"]["priority"] = priority
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8", "memory": "1Gi"}
    return made


def running(made: dict[str, Any], on_node: str) -> dict[str, Any]:
    """The pod *made* as it is once its kubelet has started it on a node."""
    container = made["spec"]["containers"][0]
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    types = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    made["spec"]["nodeName"] = on_node
    made["status"] = {
        "phase": "Running",
        "conditions": [{"type": type_, "status": "True"} for type_ in types],
        "podIP": "10.0.0.1",
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "ready": True,
                "restartCount": 0,
                "started": True,
                "state": started,
            }
        ],
    }
    return made


def victim(i: int) -> dict[str, Any]:
    """A pod of which four fill a small node; it is gone as soon as it is deleted, because no kubelet runs it."""
    made = _with_requests(pod(i), cpu="900m", memory="500Mi")
    made["spec"]["terminationGracePeriodSeconds"] = 0
    return made


def preemptor(i: int) -> dict[str, Any]:
    """An important pod that needs three quarters of a small node."""
    made = _with_requests(pod(i), cpu="3", memory="500Mi")
    made["spec"]["priorityClassName"] = PRIORITY_CLASS["metadata"]["name"]
    return made


def daemon_pod(i: int) -> dict[str, Any]:
    """Pod number *i* of a DaemonSet: for node number *i* alone."""
    made = pod(i)
    field = {"key": "metadata.name", "operator": "In", "values": [node_name(i)]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    made["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    return made


DEVICE_DRIVER = "gpu.example.com"
DEVICE_CLASS: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": DEVICE_DRIVER},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DEVICE_DRIVER}"'}}]},
}
CLAIM_SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": DEVICE_DRIVER,
                    "selectors": [
                        {
                            "cel": {
                                "expression": f'device.capacity["{DEVICE_DRIVER}"].memory'
                                '.compareTo(quantity("40Gi")) >= 0'
                            }
                        }
                    ],
                },
            }
        ]
    }
}
CLAIM_TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {"spec": CLAIM_SPEC},
}
DEVICES_PER_NODE = 8


def device_slice(i: int) -> dict[str, Any]:
    """The devices of node number *i*."""
    device = {
        "attributes": {"model": {"string": "a100"}, "driverVersion": {"version": "535.104.5"}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name(i)}-{DEVICE_DRIVER}"},
        "spec": {
            "driver": DEVICE_DRIVER,
            "nodeName": node_name(i),
            "pool": {"name": node_name(i), "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{n}", **device} for n in range(DEVICES_PER_NODE)],
        },
    }


def pod_with_claim(i: int) -> dict[str, Any]:
    """A pod that needs a device, with a claim from a template."""
    made = pod(i)
    template = CLAIM_TEMPLATE["metadata"]["name"]
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return made


def claim_of(made: dict[str, Any]) -> dict[str, Any]:
    """The claim that the controller makes for a pod of the API server."""
    metadata = made["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{metadata['name']}-gpu",
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [owner],
        },
        "spec": CLAIM_SPEC,
    }


def one_in_ten_too_large(i: int) -> dict[str, Any]:
    """A plain pod, but each tenth fits on no node."""
    made = pod(i, i % APPS)
    return _with_requests(made, cpu="1000", memory="64Mi") if i % 10 == 9 else made


def pod_for_one_node(i: int) -> dict[str, Any]:
    """A plain pod that only one of the first twenty nodes takes, by its label."""
    made = pod(i, i % APPS)
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node_name(i * 7 % 20)}
    return made


def _with_requests(made: dict[str, Any], **requests: str) -> dict[str, Any]:
    made["spec"]["containers"][0]["resources"]["requests"] = requests
    return made


def _constrained(constraint: str) -> Callable[[int], dict[str, Any]]:
    return lambda i: constrained_pod(i, i % APPS, constraint)


_POD_TYPES: dict[str, Callable[[int], dict[str, Any]]] = {
    **{constraint: _constrained(constraint) for constraint in CONSTRAINTS},
    "victim": victim,
    "preemptor": preemptor,
    "daemon": daemon_pod,
    "one-node": pod_for_one_node,
    "claim": pod_with_claim,
    "one-in-ten-too-large": one_in_ten_too_large,
}


def new_pod(type_: str, i: int) -> dict[str, Any]:
    """Pod number *i* of a type, as a client creates it: without what the API server or an admission plugin adds."""
    made = _POD_TYPES[type_](i)
    del made["metadata"]["uid"], made["status"], made["spec"]["containers"][0]["volumeMounts"]
    return made
