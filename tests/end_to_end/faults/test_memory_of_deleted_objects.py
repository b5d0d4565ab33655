"""Nothing is kept of objects that are gone: who still holds one is found by following every reference there is."""

import gc
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import msgspec
import pytest
import trio
from holders import reachable, scheduler_roots
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.watching.watched_kinds import KINDS, WATCHED_ANYWAY
from trio_sched.objects.pod_groups.workload import DeploymentSpec, JobSpec, LabelSelectorSpec
from trio_sched.plugin_api import ConfigMap, CustomResource, DaemonSet, Deployment, Job, Pod, hookimpl
from trio_sched.simulator import KubeletPace
from trio_sched.testing import (
    composite_pod_group,
    csi_driver,
    csi_node,
    csi_storage_capacity,
    device,
    device_class,
    device_request,
    device_taint_rule,
    disruption_budget,
    label_selector,
    metadata,
    namespace,
    node,
    node_affinity,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_group,
    pod_term,
    replica_set,
    replication_controller,
    resource_claim,
    resource_slice,
    service,
    spread_constraint,
    stateful_set,
    storage_class,
    term,
    volume_attachment,
)
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused

GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
    "DRAExtendedResource": True,
    "DRAConsumableCapacity": True,
    "DRADeviceTaints": True,
    "DRADeviceTaintRules": True,
    "DRADeviceBindingConditions": True,
    "DRAAdminAccess": True,
}
OF_1_37 = {name: on for name, on in GATES.items() if name not in ("GangScheduling", "WorkloadAwarePreemption")} | {
    "CompositePodGroup": True
}
GONE = "g0ne"
"""Is in every name, label and annotation of what is deleted."""
LARGE = 10_000
"""Texts from this length on are those of the annotations."""
SHOP = f"{GONE}-shop"
DRIVER, STORAGE = f"{GONE}-gpu.example.com", f"{GONE}-csi.example.com"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LABEL = f"{GONE}-label"
WIDGETS = CustomResource("example.com", "v1", "Widget")

BOUNDED = re.compile(
    r"""_lru_cache_wrapper | \._values\[          # caches with a limit in bytes or texts
    | _shapes\._shapes | selectors\._expressions
    | _classes\._labels\._by_ | _budget\._computed | _columns\[.*\]\.values\._ids
    # what the objects of a kind say, until somebody asks for it who needs these objects; Python shows an attribute's
    # dict up to 3.12 only
    | [\[.]_storage\]?\.(_claimed|_pools) | [\[.]_attached\]?\.attachments | [\[.]_csi_nodes\]?\.(limits|lowest_limits)
    | reporter\._explained | [\[.]_classes\]?\._class_of | [\[.]_constraints\]?\._services | \.parts\._budgets""",
    re.VERBOSE,
)
"""Chains to what may remember a few small texts, because its own limit is tested where it is."""


SIGNATURE_CACHE = re.compile(r"\.caches\[.*\]\._evaluations\._entries")
"""Holds pods of 4 MiB altogether: one of each kind that is decided on, for the next one of it."""


class Widgets(PluginBase):
    """Reads a custom resource."""

    watches: ClassVar = (WIDGETS,)

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        self.handle.objects(WIDGETS)


def objects() -> dict[str, list[Any]]:
    """Kind → objects of which each has a part in what becomes of the pods."""
    labels = {f"{GONE}-app": f"{GONE}-web"}
    web = f"{GONE}-app={GONE}-web"
    of_node = {ZONE: f"{GONE}-zone", LABEL: GONE}
    selector = f'device.attributes["{DRIVER}"].model == "{GONE}-{{}}"'
    return {
        "Namespace": [namespace(SHOP, labels={f"{GONE}-team": GONE})],
        "Node": [
            node(
                f"{GONE}-node",
                cpu=16,
                labels={**of_node, HOST: f"{GONE}-node"},
                allocatable={f"{GONE}.example.com/thing": 10},
                images={f"registry.test/{GONE}:1": 1 << 20},
                taints=[f"{GONE}-soft=x:PreferNoSchedule"],
            ),
            node(f"{GONE}-full", cpu=2, labels={**of_node, HOST: f"{GONE}-full"}),
            node(f"{GONE}-slow", cpu=2, labels={**of_node, HOST: f"{GONE}-slow"}),
            node(f"{GONE}-tainted", labels={HOST: f"{GONE}-tainted"}, taints=[f"{GONE}-taint={GONE}:NoSchedule"]),
        ],
        "StorageClass": [
            storage_class(f"{GONE}-wait", provisioner=STORAGE),
            storage_class(f"{GONE}-now", provisioner=STORAGE, immediate=True),
        ],
        "CSIDriver": [csi_driver(STORAGE, storage_capacity=True)],
        "CSINode": [csi_node(f"{GONE}-node", {STORAGE: 5})],
        "CSIStorageCapacity": [csi_storage_capacity(f"{GONE}-room", namespace=SHOP, storage_class=f"{GONE}-wait")],
        "PersistentVolume": [
            persistent_volume(f"{GONE}-volume", storage_class=f"{GONE}-static", driver=STORAGE, labels=labels)
        ],
        "PersistentVolumeClaim": [
            persistent_volume_claim(f"{GONE}-wait", namespace=SHOP, storage_class=f"{GONE}-wait"),
            persistent_volume_claim(f"{GONE}-static", namespace=SHOP, storage_class=f"{GONE}-static"),
            persistent_volume_claim(f"{GONE}-never", namespace=SHOP, storage_class=f"{GONE}-missing"),
            persistent_volume_claim(f"{GONE}-now", namespace=SHOP, storage_class=f"{GONE}-now"),
        ],
        "VolumeAttachment": [volume_attachment(f"{GONE}-node", f"{GONE}-volume", driver=STORAGE)],
        "DeviceClass": [
            device_class(DRIVER, f'device.driver == "{DRIVER}"', extended_resource_name=f"{GONE}.example.com/gpu")
        ],
        "ResourceSlice": [
            resource_slice(
                f"{GONE}-node",
                *(device(f"d{n}", attributes={"model": f"{GONE}-model", "index": n}) for n in range(4)),
                driver=DRIVER,
                name=f"{GONE}-slice",
                pool=f"{GONE}-pool",
            ),
            resource_slice(None, device("d"), driver=DRIVER, name=f"{GONE}-shared", pool=f"{GONE}-shared"),
        ],
        "DeviceTaintRule": [
            device_taint_rule(f"{GONE}-rule", f"{GONE}.example.com/broken:NoSchedule", driver=DRIVER, device="d3")
        ],
        "ResourceClaim": [
            resource_claim(f"{GONE}-{name}", request, namespace=SHOP)
            for name in ("model", "other")
            for request in [device_request(class_name=DRIVER, selectors=[selector.format(name)])]
        ],
        "PodGroup": [
            pod_group(f"{GONE}-gang", namespace=SHOP, min_count=2),
            pod_group(f"{GONE}-few", namespace=SHOP, min_count=3, topology_key=ZONE),
            pod_group(f"{GONE}-large", namespace=SHOP, min_count=2),
        ],
        "Service": [service(f"{GONE}-service", labels, namespace=SHOP)],
        # Of these each has a label of its own, since it would adopt the pods and delete them.
        "ReplicationController": [replication_controller(f"{GONE}-rc", {GONE: "rc"}, namespace=SHOP)],
        "ReplicaSet": [replica_set(f"{GONE}-rs", f"{GONE}=rs", namespace=SHOP)],
        "StatefulSet": [stateful_set(f"{GONE}-sts", f"{GONE}=sts", namespace=SHOP)],
        "Deployment": [Deployment(metadata(f"{GONE}-d", SHOP), DeploymentSpec(0, label_selector(f"{GONE}=d")))],
        "DaemonSet": [DaemonSet(metadata(f"{GONE}-ds", SHOP), LabelSelectorSpec(label_selector(f"{GONE}=ds")))],
        "Job": [Job(metadata(f"{GONE}-job", SHOP), JobSpec(parallelism=0, completions=1))],
        "ConfigMap": [ConfigMap(metadata(f"{GONE}-map", SHOP), {GONE: GONE})],
        "PodDisruptionBudget": [disruption_budget(f"{GONE}-pdb", web, namespace=SHOP)],
        "Widget": [
            {
                "apiVersion": f"{WIDGETS.group}/{WIDGETS.version}",
                "kind": WIDGETS.kind,
                "metadata": {"name": f"{GONE}-widget", "namespace": SHOP, "annotations": {"large": GONE * 10_000}},
            }
        ],
        "Pod": list(pods(labels, web)),
    }


def trees() -> dict[str, list[Any]]:
    """Kind → objects of trees of pod groups: one is scheduled, one does not fit, two are not whole."""
    composites = [
        composite_pod_group(f"{GONE}-top", namespace=SHOP, min_group_count=2),
        composite_pod_group(f"{GONE}-low", namespace=SHOP, min_group_count=1, parent=f"{GONE}-top"),
        composite_pod_group(f"{GONE}-wide", namespace=SHOP, min_group_count=2, topology_key=ZONE),
        composite_pod_group(f"{GONE}-circle", namespace=SHOP, parent=f"{GONE}-circle"),
    ]
    parents = {
        "top-a": ("top", 1),
        "low-a": ("low", 1),
        "wide-a": ("wide", 1),
        "wide-b": ("wide", 100),
        "in-circle": ("circle", 1),
        "orphan": ("nowhere", 1),
    }
    groups = [
        pod_group(f"{GONE}-{name}", namespace=SHOP, min_count=2, parent=f"{GONE}-{parent}")
        for name, (parent, _cpu) in parents.items()
    ]
    members = [
        pod(f"{GONE}-{name}-{number}", namespace=SHOP, group=f"{GONE}-{name}", cpu=cpu)
        for name, (_parent, cpu) in parents.items()
        for number in range(2)
    ]
    return {"CompositePodGroup": composites, "PodGroup": groups, "Pod": members}


def pods(labels: Mapping[str, str], web: str) -> Iterator[Any]:
    on_large, on_full, on_slow = ({HOST: f"{GONE}-{name}"} for name in ("node", "full", "slow"))
    here = term(f"{LABEL} In {GONE}")
    settings: dict[str, dict[str, Any]] = {
        "plain": {"node_selector": {LABEL: GONE}, "image": f"registry.test/{GONE}:1"},
        "victim": {"cpu": 2, "priority": -5, "node_selector": on_full, "grace_seconds": 5},
        "slow-victim": {"cpu": 2, "priority": -5, "node_selector": on_slow, "grace_seconds": 600},
        "large": {"cpu": 100},
        "nowhere": {"node_selector": {f"{GONE}-nothing": GONE}},
        "gated": {"gates": [f"{GONE}-gate"]},
        "volume-wait": {"volumes": [f"{GONE}-wait"]},
        "volume-static": {"volumes": [f"{GONE}-static"]},
        "volume-never": {"volumes": [f"{GONE}-never"]},
        "volume-missing": {"volumes": [f"{GONE}-missing"]},
        "volume-now": {"volumes": [f"{GONE}-now"]},
        "claim": {"claims": [f"{GONE}-model"]},
        "claim-other": {"claims": [f"{GONE}-other"]},
        "claim-missing": {"claims": [f"{GONE}-missing"]},
        "extended": {"requests": {f"{GONE}.example.com/gpu": 1}},
        "member-1": {"group": f"{GONE}-gang"},
        "member-2": {"group": f"{GONE}-gang"},
        "of-few": {"group": f"{GONE}-few"},
        "of-large-1": {"group": f"{GONE}-large", "cpu": 100},
        "of-large-2": {"group": f"{GONE}-large"},
        "of-missing": {"group": f"{GONE}-missing"},
        "apart": {"affinity": pod_anti_affinity(pod_term(web, HOST)), "labels": {f"{GONE}-app": "none"}},
        "near": {"affinity": pod_affinity(pod_term(web, LABEL, namespace_selector=f"{GONE}-team={GONE}"))},
        "near-none": {"affinity": pod_affinity(pod_term(f"{GONE}-app=none", ZONE), preferred=[(5, pod_term(web))])},
        "node-affinity": {"affinity": node_affinity(here, preferred=[(3, here)])},
        "spread": {"spread": [spread_constraint(LABEL, web)]},
        "spread-soft": {"spread": [spread_constraint(ZONE, web, hard=False)]},
        "spread-never": {"spread": [spread_constraint(f"{GONE}-no-label", web)]},
        "tolerates": {"tolerations": [f"{GONE}-taint={GONE}:NoSchedule"]},
        "port-1": {"host_ports": [8080], "node_selector": on_large},
        "port-2": {"host_ports": [8080], "node_selector": on_large},
        "thing": {"requests": {f"{GONE}.example.com/thing": 1}},
        "of-another": {"scheduler_name": f"{GONE}-scheduler"},
        "preemptor": {"cpu": 2, "priority": 100, "node_selector": on_full},
        "preemptor-in-vain": {"cpu": 3, "priority": 100, "node_selector": on_full},
        "nominated": {"cpu": 2, "priority": 100, "node_selector": on_slow},
        "beside-nominated-1": {"cpu": 1, "priority": 50, "node_selector": on_slow},
        "beside-nominated-2": {"cpu": 1, "priority": 50, "node_selector": on_slow, "host_ports": [9090]},
        "above-nominated": {"priority": 200, "node_selector": on_slow},
        "unbound": {"node_selector": on_large},
    }
    for name, given in settings.items():
        yield pod(f"{GONE}-{name}", namespace=SHOP, **{"labels": labels, **given})


def with_large_annotation(one: Any, number: int) -> Any:
    large = {"large": f"{GONE} {number} " * 10_000}
    if isinstance(one, dict):
        return {**one, "metadata": {**one["metadata"], "annotations": large}}
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, annotations=large))


async def create_all(cluster: VirtualCluster, *, with_trees: bool) -> list[Any]:
    """Create the objects, change each of them, and let the scheduler see to the pods."""
    cluster.api.faults.fail_next(3, verb="bind", resource="pods")
    created = []
    more = trees() if with_trees else {}
    for one in [one for many in (*objects().values(), *more.values()) for one in many]:
        created.append(await cluster.create(with_large_annotation(one, len(created))))
        await trio.sleep(0.3)
    for one in created:
        with gone_is_fine():
            await cluster.patch(one, {"metadata": {"annotations": {"more": f"{GONE} more " * 10_000}}})
    await trio.sleep(20)
    return created


async def delete_all(cluster: VirtualCluster, created: list[Any], *, pause_seconds: float) -> None:
    for one in created:
        with gone_is_fine():
            await cluster.delete(one, grace_seconds=0)
        await trio.sleep(pause_seconds)
    await trio.sleep(10)
    store = cluster.api.store
    for collection in list(store._collections):  # whatever its finalizers wait for
        for key, stored in list(store.collection(collection).objects.items()):
            if GONE in key:
                store.delete(collection, stored)


class gone_is_fine:  # no generator: its frames would hold the error, which holds them
    """Victims, pods of nodes and what has an owner are deleted by others."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        return isinstance(error, Refused) and error.code in (404, 409)


def forget_log(caplog: pytest.LogCaptureFixture) -> None:
    """Let go of what was logged: pytest keeps each record, with its errors, their frames and what these hold."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, type(caplog.handler)):
            handler.records.clear()


@pytest.fixture(autouse=True)
def _frozen_again() -> Iterator[None]:
    """What other tests have left is not looked at again at each of their collections."""
    yield
    gc.freeze()


def collect_all() -> None:
    """Collect also what is frozen: a scheduler's start freezes all that it finds, garbage of other tests as well."""
    gc.unfreeze()
    gc.collect()


@contextmanager
def garbage_kept() -> Iterator[dict[str, object]]:
    """What only the garbage collector would have freed: it seldom looks for garbage in a scheduler."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: dict[str, object] = {}
    try:
        yield found
        gc.collect()
        found |= {f"garbage: {type(one).__name__} {number}": one for number, one in enumerate(gc.garbage)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def held(roots: Mapping[str, object], *, at_least: int = 0) -> list[str]:
    """How texts about objects that are gone are reached, those of so many characters *at_least*."""
    return [
        f"{len(one.value)} characters: {one}"
        for one in reachable(roots)
        if isinstance(one.value, str | bytes) and len(one.value) >= at_least and GONE in str(one.value)
    ]


def test_every_kind_that_is_watched_is_among_the_objects() -> None:
    assert objects().keys() | trees().keys() == {*KINDS, *WATCHED_ANYWAY, WIDGETS.kind}


@pytest.mark.parametrize(
    ("nodes_first", "pause_seconds", "version"),
    [(False, 0.0, "1.36"), (False, 0.3, "1.37"), (True, 0.0, "1.37"), (True, 0.3, "1.36")],
    ids=["pods first, at once", "pods first, slowly, trees", "nodes first, at once, trees", "nodes first, slowly"],
)
async def test_nothing_is_kept_of_objects_that_are_gone(
    nodes_first: bool, pause_seconds: float, version: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    collect_all()  # the garbage of other tests would share our labels
    slow = KubeletPace(stop_seconds=1000)  # the grace period of a pod tells how long it stays
    is_new = version == "1.37"
    async with virtual_cluster(
        nodes=2,
        gates=OF_1_37 if is_new else GATES,
        kubernetes_version=version,
        emulated_version=version,
        kubelets=slow,
        plugins=[Widgets],
        custom_resources=[WIDGETS],
    ) as cluster:
        with garbage_kept() as garbage:
            created = await create_all(cluster, with_trees=is_new)
            bound = {one.name for one in cluster.pods() if one.node_name}
            assert (f"{GONE}-low-a-0" in bound, f"{GONE}-wide-a-0" in bound) == (is_new, False)
            assert held(scheduler_roots(), at_least=LARGE)
            in_order = created[1:] + created[:1] if nodes_first else created[::-1]
            await delete_all(cluster, in_order, pause_seconds=pause_seconds)
            await trio.sleep(100)
            large = held(scheduler_roots(), at_least=LARGE)
            assert [one for one in large if not SIGNATURE_CACHE.search(one)] == []
        assert held(garbage, at_least=LARGE) == []
        garbage.clear()
        assert cluster.scheduler.assembly is not None
        cluster.scheduler.assembly.scheduler.invalidate_signatures()
        forget_log(caplog)  # an event about an object in a namespace that is gone already is refused
        # Small garbage may wait for the collector, which runs when it will: also that of the signatures, which the
        # young generations alone do not find once the others were collected.
        collect_all()
        await trio.sleep(15 * 60)
        small: list[str] = []
        for _ in range(5):  # what refers to a part in one round may be garbage in the next
            forget_log(caplog)  # of what was logged since
            collect_all()
            await trio.sleep(3 * 60)  # what is shared by nobody any more is looked for once a minute
            small = [one for one in held(scheduler_roots()) if not BOUNDED.search(one)]
            if not small:
                break
        assert small == [], "\n".join(small)
