"""What becomes of a mixed scenario on the simulator: state of each pod when it has been tried, and all at the end."""

from typing import Any, Final

from attrs import frozen
from gangs import GANG_GATES

from contrib.scenarios.mixed.scenario import DEVICES, POD_GROUPS, TAINT_RULES, MixedScenario
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

Json = dict[str, Any]

FIRST_MINOR: Final = {DEVICES: 31, TAINT_RULES: 33, POD_GROUPS: 36, "": 0}
"""What a scenario needs → the first minor version whose API server serves it in a version that is read."""


_GATES: Final = {POD_GROUPS: GANG_GATES, TAINT_RULES: {"DRADeviceTaintRules": True}}
_HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_QUIET_SECONDS: Final = 3.0
"""Longer than the first backoff; nothing here fails twice and then succeeds."""


@frozen
class Outcome:
    """Where everything is.

    Attributes:
        tried: for each pod of the scenario, what it said when nothing changed any more after its creation.
        pods: all that are there at the end, in the same words.
        claims: volume claim → its volume, or the node for which it waits.
        devices: device claim → its devices.
    """

    tried: dict[str, str]
    pods: dict[str, str]
    claims: dict[str, str]
    devices: dict[str, list[str]]


def pod_state(pod: Json) -> str:
    """The node of a pod, else why it has none; empty if nobody has said that."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    conditions = pod["status"].get("conditions") or ()
    return next((f"{one['reason']}: {one['message']}" for one in conditions if one["type"] == "PodScheduled"), "")


def volume_of(claim: Json) -> str:
    """The volume of a volume claim if the scenario made it, else the node for which one was or will be made."""
    node = (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", "")
    return str(node or claim["spec"].get("volumeName", ""))


def devices_of(claim: Json) -> list[str]:
    """``request pool/device`` of each device that a claim is allocated."""
    allocation = (claim.get("status") or {}).get("allocation") or {"devices": {}}
    return [f"{one['request']} {one['pool']}/{one['device']}" for one in allocation["devices"].get("results") or ()]


def is_served(scenario: MixedScenario, minor: int) -> bool:
    """Whether an API server of the version serves what the scenario needs."""
    return minor >= FIRST_MINOR[scenario.needs]


def gates_of(scenario: MixedScenario) -> dict[str, bool]:
    """The gates that a scheduler has to have for it."""
    return _GATES.get(scenario.needs, {})


async def simulated_outcome(scenario: MixedScenario, minor: int = 36, shards: int = 0) -> Outcome:
    """Try *scenario* on a simulated API server of the version; another version has other random numbers, too.

    With *shards* its scheduler shares the work, and is alone.
    """
    details: dict[str, Any] = (
        {"config": f"{_HEAD}sharding: {{shards: {shards}}}", "leader_elect": True} if shards else {}
    )
    async with virtual_cluster(
        kubernetes_version=f"1.{minor}",
        gates=gates_of(scenario),
        seed=minor,
        scheduler=False,
        kubelets=False,
        **details,
    ) as cluster:
        for one in scenario.objects:
            await cluster.create(one)
        await cluster.start_scheduler()
        tried = {}
        for pod in scenario.pods:
            await cluster.create(pod)
            await cluster.settle(quiet_seconds=_QUIET_SECONDS)
            name = pod["metadata"]["name"]
            tried[name] = pod_state(_stored(cluster, "pods")[name])
        return Outcome(
            tried,
            {name: pod_state(one) for name, one in _stored(cluster, "pods").items()},
            {name: volume_of(one) for name, one in _stored(cluster, "persistentvolumeclaims").items()},
            {name: devices_of(one) for name, one in _stored(cluster, "resourceclaims.resource.k8s.io").items()},
        )


def _stored(cluster: VirtualCluster, collection: str) -> dict[str, Json]:
    return {one.fields["metadata"]["name"]: one.fields for one in cluster.api.store.collection(collection).in_order()}
