"""Deployments, StatefulSets and DaemonSets: rollouts, sizes, deletions."""

from typing import Any

from workload_parts import HUGE, apart, has, lacks, rolling, scenario, selector, template
from workload_worlds import Place

# --- Deployments ----------------------------------------------------------------------------------------------------


@scenario
async def rollouts(at: Place) -> None:
    await at.begin(nodes=3)
    await at.make("deployments", "web", replicas=4, selector=selector(), template=template(), strategy=rolling(1, 0))
    await at.reach("created")
    await at.patch("deployments", "web", template=template("app:2"))
    await at.reach("one more at a time")
    await at.patch("deployments", "web", template=template("app:3"), strategy=rolling(0, "50%"))
    await at.reach("half at a time")
    await at.patch("deployments", "web", paused=True)
    await at.patch("deployments", "web", template=template("app:4"))
    await at.scale("deployments", "web", 6)
    await at.reach("changed and scaled while paused")
    await at.patch("deployments", "web", paused=None)
    await at.reach("resumed")
    await at.patch("deployments", "web", template=template("app:1"))
    await at.reach("undone to the first revision")
    await at.patch(
        "deployments", "web", template=template("app:5"), strategy={"type": "Recreate", "rollingUpdate": None}
    )
    await at.reach("created again")
    await at.patch("deployments", "web", revisionHistoryLimit=1)
    await at.reach("history cut")
    await at.patch("deployments", "web", minReadySeconds=3, template=template("app:6"), strategy=rolling(1, 1))
    await at.reach("with seconds to be ready", until=has("availableReplicas=6, Available=True"), within_seconds=60)


@scenario
async def stuck_rollouts(at: Place) -> None:
    await at.begin(nodes=3)
    limits: list[tuple[Any, Any]] = [(1, 0), (0, 1), ("25%", "25%"), (2, 2), ("100%", 0)]
    for number, (surge, unavailable) in enumerate(limits):
        app = f"d{number}"
        rules = {"strategy": rolling(surge, unavailable), "progressDeadlineSeconds": 4}
        await at.make("deployments", app, replicas=5, selector=selector(app), template=template(app=app), **rules)
    await at.reach("created")
    for number in range(len(limits)):
        await at.patch("deployments", f"d{number}", template=template("app:2", f"d{number}", cpu=HUGE))
    late = lacks("progressed", "is progressing", "Created new replica set")
    await at.reach("stuck", until=late)
    for size in (8, 3):
        for number in range(len(limits)):
            await at.scale("deployments", f"d{number}", size)
        await at.reach(f"scaled to {size} while stuck", until=late)
    for number in range(len(limits)):
        await at.patch("deployments", f"d{number}", template=template("app:3", f"d{number}"))
    await at.reach("mended")


@scenario
async def deletions(at: Place) -> None:
    await at.begin(nodes=3)
    for name in ("kept", "gone", "last"):
        await at.make("deployments", name, replicas=2, selector=selector(name), template=template(app=name))
    await at.make("replicationcontrollers", "old", replicas=2, selector={"app": "old"}, template=template(app="old"))
    await at.make("replicasets", "plain", replicas=3, selector=selector("plain"), template=template(app="plain"))
    await at.reach("created")
    await at.make("pods", "orphan", metadata={"labels": {"app": "plain"}}, **template()["spec"])
    await at.reach("adopted, and deleted as one too many")
    await at.delete("pods", at.pods(app="kept")[0]["metadata"]["name"])
    await at.delete("pods", at.pods(app="old")[0]["metadata"]["name"])
    await at.reach("pods deleted")
    released = at.pods(app="plain")[0]["metadata"]["name"]
    await at.send(
        "PATCH",
        at.path("pods", released),
        {"metadata": {"labels": {"app": "other"}}},
        **{"content-type": "application/merge-patch+json"},
    )
    at.world.mirror.masks[at.name][released] = "plain-#"
    await at.reach("a pod released")
    await at.scale("deployments", "kept", 0)
    await at.reach("scaled to nothing")
    await at.scale("deployments", "kept", 3)
    await at.reach("scaled up")
    await at.delete("deployments", "kept", "Orphan")
    await at.delete("deployments", "gone", "Background")
    await at.delete("deployments", "last", "Foreground")
    await at.delete("replicasets", "plain", "Orphan")
    await at.reach("deleted", until=lacks("gone", "last"))
    await at.make("deployments", "kept", replicas=2, selector=selector("kept"), template=template(app="kept"))
    await at.reach("adopted")
    await at.send("DELETE", f"/api/v1/namespaces/{at.name}")
    await at.reach("namespace deleted", until=lacks("pods"), within_seconds=60)


# --- StatefulSets ---------------------------------------------------------------------------------------------------


@scenario
async def stateful_sets(at: Place) -> None:
    await at.begin(nodes=3)
    await at.make("statefulsets", "db", replicas=3, serviceName="db", selector=selector(), template=template())
    await at.reach("created in order")
    await at.delete("pods", "db-1")
    await at.reach("a lost pod is back")
    await at.scale("statefulsets", "db", 2)
    await at.reach("scaled down")
    await at.scale("statefulsets", "db", 4)
    await at.reach("scaled up")
    await at.patch(
        "statefulsets",
        "db",
        template=template("app:2"),
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
    )
    await at.reach("rolled down to the partition")
    await at.delete("pods", "db-0")
    await at.reach("below the partition it is the old one")
    await at.patch("statefulsets", "db", updateStrategy={"rollingUpdate": {"partition": 0}})
    await at.reach("rolled")
    await at.patch("statefulsets", "db", template=template("app:3", cpu=HUGE))
    await at.reach("stuck at the last")
    await at.patch("statefulsets", "db", template=template("app:4"))
    await at.reach("mended, but a pod that never was ready stays")
    await at.delete("pods", "db-3")
    await at.reach("it was deleted by hand")
    await at.patch("statefulsets", "db", updateStrategy={"type": "OnDelete", "rollingUpdate": None})
    await at.patch("statefulsets", "db", template=template("app:5"))
    await at.delete("pods", "db-2")
    await at.reach("replaced when deleted")
    await at.patch("statefulsets", "db", revisionHistoryLimit=0)
    await at.reach("history cut")
    await at.delete("statefulsets", "db", "Foreground")
    await at.reach("deleted", until=lacks("pods"))


@scenario
async def parallel_stateful_sets(at: Place) -> None:
    await at.begin(nodes=3)
    await at.make(
        "statefulsets",
        "db",
        replicas=4,
        serviceName="db",
        podManagementPolicy="Parallel",
        ordinals={"start": 1},
        selector=selector(),
        template=template(**apart()),
    )
    await at.reach("created at once, one without a node")
    await at.scale("statefulsets", "db", 3)
    await at.reach("scaled down")
    await at.patch(
        "statefulsets",
        "db",
        template=template("app:2", **apart()),
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
    )
    await at.reach("two at a time")
    await at.patch("statefulsets", "db", template=template("app:3", cpu=HUGE))
    await at.reach("stuck with two")
    await at.patch("statefulsets", "db", template=template("app:4"))
    await at.reach("mended")
    await at.scale("statefulsets", "db", 0)
    await at.reach("scaled to nothing")
    for name, policy in (("ordered", "OrderedReady"), ("parallel", "Parallel")):
        await at.make(
            "statefulsets",
            name,
            replicas=3,
            serviceName=name,
            podManagementPolicy=policy,
            minReadySeconds=2,
            selector=selector(name),
            template=template(app=name),
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        )
    await at.reach("with seconds to be ready", until=has("availableReplicas=3"))
    await at.patch("statefulsets", "ordered", template=template("app:2", "ordered", cpu=HUGE))
    await at.patch("statefulsets", "parallel", template=template("app:2", "parallel", cpu=HUGE))
    await at.reach("both stuck")


@scenario
async def stateful_claims(at: Place) -> None:
    await at.begin(nodes=2)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "nobody",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    for name, when in (("keeps", "Retain"), ("deletes", "Delete")):
        await at.make(
            "statefulsets",
            name,
            replicas=2,
            serviceName=name,
            podManagementPolicy="Parallel",
            selector=selector(name),
            template=template(app=name),
            volumeClaimTemplates=[claim],
            persistentVolumeClaimRetentionPolicy={"whenDeleted": when, "whenScaled": when},
        )
    await at.reach("claims are made")
    for name in ("keeps", "deletes"):
        await at.scale("statefulsets", name, 1)
    await at.reach("scaled down")
    for name in ("keeps", "deletes"):
        await at.delete("statefulsets", name)
    await at.reach("deleted", until=lacks("pods"))


# --- DaemonSets -----------------------------------------------------------------------------------------------------


@scenario
async def daemon_sets(at: Place) -> None:
    await at.begin(nodes=2)
    await at.make("daemonsets", "all", selector=selector("all"), template=template(app="all"))
    picky = template(app="some", nodeSelector={"disk": "fast"})
    await at.make("daemonsets", "some", selector=selector("some"), template=picky)
    await at.reach("created")
    await at.add_node(2, disk="fast")
    await at.reach("a new node")
    await at.patch_node(0, {"metadata": {"labels": {"disk": "fast"}}})
    await at.reach("a label given")
    await at.patch_node(2, {"metadata": {"labels": {"disk": None}}})
    await at.reach("a label taken")
    await at.delete("pods", at.pod_on(1, app="all"))
    await at.reach("a lost pod is back")
    await at.patch_node(1, {"spec": {"unschedulable": True}})
    await at.reach("cordoned")
    await at.patch_node(1, {"spec": {"unschedulable": None}})
    await at.patch_node(2, {"spec": {"taints": [{"key": "own", "value": "x", "effect": "NoSchedule"}]}})
    await at.reach("a taint that keeps pods away")
    await at.patch("daemonsets", "all", template=template("app:2", "all"))
    await at.reach("rolled")
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await at.patch("daemonsets", "all", template=template("app:3", "all"), updateStrategy=surge)
    await at.reach("rolled with surge")
    await at.patch("daemonsets", "all", template=template("app:4", "all", cpu=HUGE))
    await at.reach("stuck with surge")
    one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    await at.patch("daemonsets", "all", updateStrategy=one)
    await at.reach("stuck without surge")
    await at.patch("daemonsets", "all", template=template("app:5", "all"))
    await at.reach("mended")
    await at.patch("daemonsets", "all", updateStrategy={"type": "OnDelete", "rollingUpdate": None})
    await at.patch("daemonsets", "all", template=template("app:6", "all"))
    await at.delete("pods", at.pod_on(0, app="all"))
    await at.reach("replaced when deleted")
    await at.patch_node(2, {"spec": {"taints": [{"key": "own", "value": "x", "effect": "NoExecute"}]}})
    await at.reach("a taint that evicts")
    await at.delete("daemonsets", "some", "Orphan")
    await at.delete("daemonsets", "all", "Foreground")
    await at.reach("deleted", until=lacks("all"))
