"""Nodes whose kubelets are cut off: what becomes of their pods until somebody decides."""

from workload_parts import ending, has, lacks, scenario, selector, template
from workload_worlds import Place

_SOON = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    for key in ("not-ready", "unreachable")
]
_OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
_DONE = ("jobs stays: completionTime", "pods of Job patient: Running")


async def _begin(at: Place) -> None:
    """Workloads of all kinds on the first node, and then two more nodes."""
    zone = {"topology.kubernetes.io/zone": at.name}  # of its own: other scenarios lose nodes, too
    await at.begin(nodes=0)
    await at.add_node(0, **zone)
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": at.name,
        "hostPath": {"path": "/data"},
    }
    await at.send("POST", "/api/v1/persistentvolumes", {"metadata": {"name": at.name}, "spec": volume})
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": at.name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await at.make("deployments", "web", replicas=2, selector=selector(), template=template(tolerations=_SOON))
    await at.make(
        "statefulsets",
        "db",
        replicas=1,
        serviceName="db",
        selector=selector("db"),
        template=template(app="db", tolerations=_SOON),
        volumeClaimTemplates=[claim],
    )
    await at.make("daemonsets", "all", selector=selector("all"), template=template(app="all"))
    never = {"restartPolicy": "Never"}
    await at.make("jobs", "long", template=template(app="long", tolerations=_SOON, **never))
    await at.make(
        "jobs", "patient", podReplacementPolicy="Failed", template=template(app="patient", tolerations=_SOON, **never)
    )
    stays = template(app="stays", annotations=ending(25), tolerations=[{"operator": "Exists"}], **never)
    await at.make("jobs", "stays", template=stays)
    await at.make("replicasets", "kept", replicas=1, selector=selector("kept"), template=template(app="kept"))
    await at.reach("created", until=has("pods of StatefulSet db db-0: Running"))
    await at.cut_off(0)
    for number in (1, 2):
        await at.add_node(number, **zone)
    evicted = ("pods of StatefulSet db db-0: terminating Running", "pods of Job long: Running")
    await at.reach("unreachable", until=has(*evicted), within_seconds=60)


@scenario
async def reconnected_nodes(at: Place) -> None:
    await _begin(at)
    await at.make("poddisruptionbudgets", "kept", minAvailable=1, selector=selector("kept"))
    await at.make("pods", "bound", nodeName=at.node_name(0), **template()["spec"])
    await at.delete("pods", at.pods(app="kept")[0]["metadata"]["name"])
    await at.reach("one is deleted, one is bound there")
    await at.reconnect(0)
    await at.reach("reconnected", until=has("pods of StatefulSet db db-0: Running", *_DONE), within_seconds=60)


@scenario
async def out_of_service_nodes(at: Place) -> None:
    await _begin(at)
    await at.patch_node(0, {"spec": {"taints": [_OUT_OF_SERVICE]}})
    await at.reach("out of service", until=has("pods of StatefulSet db db-0: Running"), within_seconds=60)
    await at.reconnect(0)
    await at.reach("reconnected, and still tainted", until=has("n0: ready ['True'] ['node.kubernetes.io/out", *_DONE))
    await at.patch_node(0, {"spec": {"taints": None}})
    await at.reach("the taint is gone")


@scenario
async def abandoned_nodes(at: Place) -> None:
    await _begin(at)
    await at.remove_at_once("db-0")
    await at.reach("a pod is deleted by force", until=has("pods of StatefulSet db db-0: Running"))
    await at.delete_node(0)
    gone = lacks("terminating Running bound DeletionByTaintManager")
    await at.reach("the node is deleted", until=lambda seen: gone(seen) and has(*_DONE)(seen), within_seconds=150)
