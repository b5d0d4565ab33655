"""Jobs and CronJobs; drains, nodes that are lost, quotas."""

import trio
from workload_parts import apart, ending, has, lacks, scenario, selector, template
from workload_worlds import MERGE, Place

# --- Jobs -----------------------------------------------------------------------------------------------------------


@scenario
async def jobs(at: Place) -> None:
    await at.begin(nodes=2)
    short, never = ending(1), {"restartPolicy": "Never"}
    await at.make("jobs", "four", completions=4, parallelism=2, template=template(annotations=short, **never))
    await at.make(
        "jobs",
        "indexed",
        completions=3,
        parallelism=3,
        completionMode="Indexed",
        template=template(annotations=short, **never),
    )
    await at.make("jobs", "short-lived", ttlSecondsAfterFinished=3, template=template(annotations=short, **never))
    await at.make("jobs", "late", activeDeadlineSeconds=3, parallelism=2, template=template(**never))
    await at.make("jobs", "any", parallelism=3, template=template(annotations=short, **never))
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]
    await at.make(
        "jobs",
        "refused",
        parallelism=2,
        completions=2,
        podFailurePolicy={"rules": rules},
        template=template(annotations=ending(1, 3), **never),
    )
    await at.make("jobs", "held", suspend=True, parallelism=2, template=template(**never))
    await at.make("jobs", "long", parallelism=2, completions=5, template=template(**never))
    await at.reach("run", until=lacks("short-lived"))
    await at.patch("jobs", "held", suspend=False)
    await at.patch("jobs", "long", suspend=True)
    await at.reach("one resumed, one suspended")
    await at.patch("jobs", "long", suspend=False, parallelism=3)
    await at.reach("resumed with more")
    await at.patch("jobs", "long", parallelism=1)
    await at.reach("with less")
    await at.delete("jobs", "held", "Foreground")
    await at.delete("jobs", "four", "Orphan")
    await at.delete("jobs", "long")
    await at.reach("deleted", until=lacks("held", "Job long", "jobs long"))


@scenario
async def failing_jobs(at: Place) -> None:
    await at.begin(nodes=2)
    never = {"restartPolicy": "Never"}
    failing = template(annotations=ending(1, 1), **never)
    await at.make("jobs", "twice", backoffLimit=1, template=failing)
    await at.make("jobs", "at-once", backoffLimit=0, template=failing)
    await at.make(
        "jobs",
        "by-index",
        completions=2,
        parallelism=2,
        completionMode="Indexed",
        backoffLimitPerIndex=0,
        template=failing,
    )
    ignore = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    await at.make(
        "jobs",
        "replaced",
        podFailurePolicy={"rules": ignore},
        backoffLimit=0,
        template=template(app="replaced", **never),
    )
    await at.make("jobs", "lost", backoffLimit=0, template=template(app="lost", **never))
    await at.make("jobs", "found", backoffLimit=3, template=template(app="found", **never))
    enough = {"rules": [{"succeededCount": 1}]}
    await at.make(
        "jobs",
        "enough",
        completions=3,
        parallelism=1,
        completionMode="Indexed",
        successPolicy=enough,
        template=template(annotations=ending(1), **never),
    )
    await at.reach("failed", until=has("jobs twice: Failed=True", "jobs twice"), within_seconds=40)
    await at.evict(at.pods(app="replaced")[0]["metadata"]["name"])
    await at.delete("pods", at.pods(app="lost")[0]["metadata"]["name"])
    await at.delete("pods", at.pods(app="found")[0]["metadata"]["name"])
    await at.reach("pods deleted", within_seconds=40, until=has("pods of Job found: Running"))


@scenario
async def cron_jobs(at: Place) -> None:
    await at.begin(nodes=2)
    await trio.sleep(await at.seconds_to_minute(at_least=15))  # all of them are to be created within one minute
    never = {"restartPolicy": "Never"}
    for name, policy, seconds in (
        ("allows", "Allow", 0),
        ("forbids", "Forbid", 0),
        ("replaces", "Replace", 0),
        ("ends", "Forbid", 1),
        ("sleeps", "Allow", 1),
    ):
        annotations = ending(seconds) if seconds else None
        await at.make(
            "cronjobs",
            name,
            schedule="* * * * *",
            concurrencyPolicy=policy,
            suspend=name == "sleeps",
            successfulJobsHistoryLimit=1,
            jobTemplate={"spec": {"template": template(annotations=annotations, **never)}},
        )
    await at.reach("created", until=has("pods of Job ends"), within_seconds=90)
    await at.reach("a minute later", until=has("cronjobs allows: active 2"), within_seconds=90)
    await at.patch("cronjobs", "allows", suspend=True)
    await at.delete("cronjobs", "replaces", "Foreground")
    await at.delete("cronjobs", "forbids")
    await at.reach("deleted", until=lacks("replaces", "forbids"))


# --- Drains and node losses -----------------------------------------------------------------------------------------


@scenario
async def drains(at: Place) -> None:
    await at.begin(nodes=3)
    await at.make("deployments", "web", replicas=3, selector=selector(), template=template(**apart()))
    await at.make("deployments", "free", replicas=2, selector=selector("free"), template=template(app="free"))
    for name in ("bare", "other"):
        await at.make("pods", name, metadata={"labels": {"app": name}}, **template()["spec"])
    await at.make("jobs", "long", template=template(app="long", restartPolicy="Never"))
    await at.reach("pods")
    await at.make("poddisruptionbudgets", "web", minAvailable=2, selector=selector())
    await at.make("poddisruptionbudgets", "free", maxUnavailable="50%", selector=selector("free"))
    await at.make("poddisruptionbudgets", "bare", maxUnavailable=0, selector=selector("bare"))
    await at.make("poddisruptionbudgets", "long", maxUnavailable=1, selector=selector("long"))
    await at.make("poddisruptionbudgets", "nobody", minAvailable=1, selector=selector("nobody"))
    expression = {"key": "app", "operator": "In", "values": ["other", "another"]}
    await at.make("poddisruptionbudgets", "other", minAvailable="10%", selector={"matchExpressions": [expression]})
    await at.reach("budgets")
    await at.patch_node(0, {"spec": {"unschedulable": True}})
    await at.evict(at.pod_on(0, app="app"))
    await at.evict("bare")
    await at.reach("one evicted, its replacement waits")
    await at.patch_node(1, {"spec": {"unschedulable": True}})
    await at.evict(at.pod_on(1, app="app"))
    await at.reach("the next is refused")
    await at.patch_node(0, {"spec": {"unschedulable": None}})
    await at.reach("uncordoned")
    await at.evict(at.pod_on(1, app="app"))
    await at.reach("now it is allowed")
    await at.patch_node(1, {"spec": {"unschedulable": None}})
    await at.patch("poddisruptionbudgets", "web", minAvailable="100%")
    await at.reach("a budget of all")
    await at.evict(at.pod_on(1, app="app"))
    await at.scale("deployments", "web", 5)
    await at.reach("more are wanted than fit")
    pending = next(one["metadata"]["name"] for one in at.pods(app="app") if not one["spec"].get("nodeName"))
    await at.evict(pending)
    await at.reach("a pending one may always go")
    await at.delete("poddisruptionbudgets", "web")
    await at.evict(at.pod_on(1, app="app"))
    await at.reach("without a budget")


@scenario
async def node_losses(at: Place) -> None:
    await at.begin(nodes=0)
    for number in range(4):
        await at.add_node(number, role="db" if number == 3 else "web")
    patient = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
        for key in ("not-ready", "unreachable")
    ]
    web = template(tolerations=patient, nodeSelector={"role": "web"}, **apart())
    await at.make("deployments", "web", replicas=3, selector=selector(), template=web)
    db = template(app="db", nodeSelector={"role": "db"})
    await at.make("statefulsets", "db", replicas=1, serviceName="db", selector=selector("db"), template=db)
    await at.make("daemonsets", "all", selector=selector("all"), template=template(app="all"))
    await at.make("pods", "bare", **template(nodeSelector={"role": "db"})["spec"])
    await at.reach("created")
    await say_ready(at, 0, "False")
    await at.reach("not ready for longer than tolerated", until=has("pods of ReplicaSet web-# revision 1: Pending"))
    await say_ready(at, 0, "True")
    await at.reach("ready again")
    await at.cut_off(1)
    looked_at = {"metadata": {"annotations": {"looked-at": "now"}}}  # a DaemonSet may have missed the taint
    await at.send("PATCH", at.path("daemonsets", "all"), looked_at, **MERGE)
    await at.reach("unreachable", until=has("pods of ReplicaSet web-# revision 1: Pending"), within_seconds=60)
    await at.reconnect(1)
    await at.reach("reachable again")
    await at.patch_node(2, {"spec": {"taints": [{"key": "own", "value": "x", "effect": "NoExecute"}]}})
    await at.reach("a taint that nothing tolerates")
    await at.patch_node(2, {"spec": {"taints": None}})
    await at.reach("the taint is gone")
    await at.delete_node(3)
    await at.delete_node(2)
    await at.reach("nodes deleted", until=lacks("pods bare"), within_seconds=100)


@scenario
async def zone_losses(at: Place) -> None:
    await at.begin(nodes=0)
    for number in range(4):
        await at.add_node(number, **{"topology.kubernetes.io/zone": at.name})
    patient = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    web = template(tolerations=[{**patient, "tolerationSeconds": 2}], **apart())
    await at.make("deployments", "web", replicas=4, selector=selector(), template=web)
    await at.reach("created")
    await say_ready(at, 0, "False")
    await at.reach("one is lost", until=has("pods of ReplicaSet web-# revision 1: Pending"))
    await say_ready(at, 1, "False")
    await say_ready(at, 2, "False")
    await trio.sleep(12)
    await at.reach("most are lost, which evicts nothing more")
    await say_ready(at, 0, "True")
    evicting = [f"n{number}: ready ['False'] ['node.kubernetes.io/not-ready:NoExecute" for number in (1, 2)]
    await at.reach("half are lost", until=has(*evicting), within_seconds=60)
    await say_ready(at, 1, "True")
    await say_ready(at, 2, "True")
    await at.reach("all are back")


async def say_ready(at: Place, number: int, status: str) -> None:
    """What a kubelet says about its node."""
    condition = {"type": "Ready", "status": status, "reason": "Said", "message": "said"}
    await at.patch_node(number, {"status": {"conditions": [condition]}}, "/status")


# --- Quotas ---------------------------------------------------------------------------------------------------------


@scenario
async def quotas(at: Place) -> None:
    await at.begin(nodes=2)
    await at.make("resourcequotas", "few", hard={"pods": "2", "requests.cpu": "1"})
    await at.reach("a quota")
    await at.make("replicasets", "web", replicas=3, selector=selector(), template=template())
    await at.reach("pods that request nothing are refused", until=has("ReplicaFailure=True"))
    await at.make("limitranges", "usual", limits=[{"type": "Container", "defaultRequest": {"cpu": "300m"}}])
    await at.scale("replicasets", "web", 4)
    await at.reach("two fit", until=has("ReplicaFailure=True", "'pods': '2'"))
    await at.patch("resourcequotas", "few", hard={"pods": "5", "requests.cpu": "1"})
    await at.scale("replicasets", "web", 5)
    await at.reach("three fit", until=has("ReplicaFailure=True", "'requests.cpu': '900m'"))
    await at.make("deployments", "late", replicas=1, selector=selector("late"), template=template(app="late"))
    await at.reach("a Deployment without room", until=has("deployments late: wants 1, seen", "ReplicaFailure=True"))
    await at.scale("replicasets", "web", 1)
    await at.delete("deployments", "late")
    await at.reach("scaled down", until=lacks("late:"))
    await at.make("pods", "large", **template(cpu="800m")["spec"])
    await at.make("pods", "small", **template(cpu="100m")["spec"])
    await at.reach("bare pods")
    await at.delete("pods", "small")
    await at.make("jobs", "some", parallelism=3, template=template(annotations=ending(1), restartPolicy="Never"))
    await at.reach("a Job", within_seconds=40)
    storage = {"accessModes": ["ReadWriteOnce"], "storageClassName": "grows"}
    grows = {"metadata": {"name": "grows"}, "provisioner": "kubernetes.io/no-provisioner", "allowVolumeExpansion": True}
    await at.send("POST", "/apis/storage.k8s.io/v1/storageclasses", grows)
    await at.make("resourcequotas", "space", hard={"requests.storage": "3Gi", "services.nodeports": "1"})
    await at.reach("a quota of space")
    await at.make("persistentvolumeclaims", "c", resources={"requests": {"storage": "1Gi"}}, **storage)
    await at.make("persistentvolumeclaims", "d", resources={"requests": {"storage": "3Gi"}}, **storage)
    for name in ("s", "t"):
        await at.make("services", name, ports=[{"port": 80}])
    await at.patch("services", "s", type="NodePort")
    await at.patch("services", "t", type="NodePort")
    await at.reach("one service is changed, the other is not")
    await at.delete("services", "s")
    await at.reach("deleted")
    await at.delete("resourcequotas", "few")
    await at.reach("no quota", within_seconds=40)
