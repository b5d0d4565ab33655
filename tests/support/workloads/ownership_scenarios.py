"""What belongs to which workload: adopted and released pods, revisions and claims; finalizers, namespaces."""

from workload_parts import HUGE, ending, has, lacks, scenario, selector, template
from workload_worlds import MERGE, Place

HOLD = ["example.com/hold"]


async def relabel(at: Place, pod: str, **labels: str | None) -> None:
    """Change labels of a pod; those that are None are taken."""
    await at.send("PATCH", at.path("pods", pod), {"metadata": {"labels": labels}}, **MERGE)


async def hold(at: Place, pod: str, finalizers: list[str] | None) -> None:
    """Give a pod finalizers."""
    await at.send("PATCH", at.path("pods", pod), {"metadata": {"finalizers": finalizers}}, **MERGE)


@scenario
async def adoptions(at: Place) -> None:
    await at.begin(nodes=2)
    done = template(restartPolicy="Never")["spec"]
    for name, code in (("good", 0), ("bad", 1)):
        await at.make("pods", name, metadata={"labels": {"app": "rs"}, "annotations": ending(1, code)}, **done)
    await at.reach("pods that have ended", until=has("pods good: Succeeded", "pods bad: Failed"))
    await at.make("replicasets", "rs", replicas=1, selector=selector("rs"), template=template(app="rs"))
    await at.reach("are not adopted")
    await relabel(at, at.pods(app="rs")[-1]["metadata"]["name"], app="other")
    await at.reach("a pod is released")
    await at.make(
        "statefulsets", "db", replicas=2, serviceName="db", selector=selector("db"), template=template(app="db")
    )
    await at.reach("a StatefulSet")
    await at.make("pods", "bare", metadata={"labels": {"app": "db"}}, **template()["spec"])
    await at.reach("adopts no pod of another name")
    await at.make("pods", "db-2", metadata={"labels": {"app": "db"}}, **template()["spec"])
    await at.reach("and deletes the next one")
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    await at.patch("statefulsets", "db", updateStrategy=strategy)
    await at.make("pods", "db-3", metadata={"labels": {"app": "else"}}, **template()["spec"])
    await at.scale("statefulsets", "db", 4)
    await at.reach("a pod of the name is in the way", until=has("pods of StatefulSet db db-2"))
    await relabel(at, "db-3", app="db")
    await at.reach("until it is adopted", until=has("readyReplicas=4"))
    await at.delete("statefulsets", "db", "Orphan")
    await at.make("daemonsets", "all", selector=selector("all"), template=template(app="all"))
    await at.reach("pods and revisions are left behind")
    await at.delete("daemonsets", "all", "Orphan")
    await at.make(
        "statefulsets", "db", replicas=4, serviceName="db", selector=selector("db"), template=template(app="db")
    )
    await at.reach("and adopted")
    await at.make("daemonsets", "all", selector=selector("all"), template=template("app:2", app="all"))
    await at.reach("with the history")


@scenario
async def claim_owners(at: Place) -> None:
    await at.begin(nodes=1)
    group = "/apis/storage.k8s.io/v1/storageclasses"
    await at.send("POST", group, {"metadata": {"name": at.name}, "provisioner": "kubernetes.io/no-provisioner"})
    for number in range(3):
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": at.name,
            "hostPath": {"path": "/x"},
        }
        body = {"metadata": {"name": f"{at.name}-{number}"}, "spec": spec}
        await at.send("POST", "/api/v1/persistentvolumes", body)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": at.name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await at.make(
        "statefulsets",
        "db",
        replicas=3,
        serviceName="db",
        selector=selector(),
        template=template(),
        volumeClaimTemplates=[claim],
    )
    await at.reach("claims stay", until=has("readyReplicas=3"))
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await at.patch("statefulsets", "db", persistentVolumeClaimRetentionPolicy=policy)
    await at.reach("claims are to go")
    await at.scale("statefulsets", "db", 2)
    await at.reach("one goes", until=lacks("data-db-2: accessModes"))
    await at.patch("statefulsets", "db", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain"})
    await at.reach("claims stay when the set goes")
    await at.delete("statefulsets", "db")
    await at.reach("it is gone", until=lacks("pods of"))


@scenario
async def late_surges(at: Place) -> None:
    await at.begin(nodes=2)
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    rules = {"minReadySeconds": 2, "updateStrategy": surge, "revisionHistoryLimit": 1}
    await at.make("daemonsets", "all", selector=selector("all"), template=template(app="all"), **rules)
    await at.reach("created", until=has("numberAvailable=2"))
    for number in (2, 3):
        await at.patch("daemonsets", "all", template=template(f"app:{number}", "all"))
        await at.reach(f"rolled to {number}", until=has("updatedNumberScheduled=2"))
    await at.patch("daemonsets", "all", template=template("app:4", "all", cpu=HUGE))
    await at.reach("stuck, with a history of what is in use")
    await at.patch("daemonsets", "all", template=template("app:5", "all"))
    await at.reach("mended", until=has("updatedNumberScheduled=2"))


@scenario
async def held_namespaces(at: Place) -> None:
    await at.begin(nodes=2)
    await at.make("deployments", "web", replicas=2, selector=selector(), template=template())
    await at.make(
        "statefulsets", "db", replicas=1, serviceName="db", selector=selector("db"), template=template(app="db")
    )
    await at.make("pods", "held", metadata={"labels": {"app": "held"}, "finalizers": HOLD}, **template()["spec"])
    await at.reach("created")
    await at.make("poddisruptionbudgets", "web", minAvailable=1, selector=selector())
    await hold(at, at.pods(app="app")[0]["metadata"]["name"], HOLD)
    await at.delete("deployments", "web", "Foreground")
    await at.reach("a Deployment waits for its last pod")
    await at.send("DELETE", f"/api/v1/namespaces/{at.name}")
    await at.reach("the namespace waits for its last pods", until=lacks("db-0: Running", "db-0: terminating"))
    for pod in at.world.mirror.of("pods", at.name):
        await hold(at, pod["metadata"]["name"], None)
    await at.reach("it is gone", until=lacks("statefulsets", "poddisruptionbudgets"), within_seconds=60)
