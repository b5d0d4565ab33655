"""Replicas that share the work, under load: killed, stopped, cut off, with requests that arrive much too late."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import trio
from attrs import define, field
from device_ledger import DeviceLedger
from evictions import Evictions
from gangs import GANG_GATES, GATES_OF, Gangs
from ledger import Ledger
from lossy_network import LossyNetwork, start_behind_lossy_network
from rule_ledger import APART_IN_ZONES, APART_ON_NODES, IN_ONE_ZONE, RuleLedger
from sharded_replicas import HEAD, sharding_of

from trio_sched.objects.pod import Pod
from trio_sched.simulator import KubeletPace, PretendExtender, leaving
from trio_sched.testing import (
    device,
    device_class,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_group,
    pod_term,
    resource_claim,
    resource_slice,
    spread_constraint,
    storage_class,
)
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.scheduler_process import SchedulerProcess

ZONES = 4
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
POOL = "example.com/pool"
WORKLOADS = 5
EXTENDER, EXTENDED = "http://extender.test", "example.com/extended"
EXTENDER_CONFIG = f"""
extenders:
- urlPrefix: {EXTENDER}
  filterVerb: filter
  nodeCacheCapable: true
  managedResources: [{{name: {EXTENDED}, ignoredByScheduler: true}}]
"""
GPU = "example.com/gpu"
WAYS_OF_GROUPS: list[dict[str, Any]] = [
    {"emulated_version": "1.36", "gates": GANG_GATES},
    {"emulated_version": "1.36", "gates": GATES_OF["1.36"]},
    {"emulated_version": "1.37", "kubernetes_version": "1.37", "gates": GATES_OF["1.37"]},
]
"""How others are evicted for groups: for each pod, for the whole group, for the group and as whole groups."""
QUIET_SECONDS = 150.0
"""After the last fault; leases expire and proposals are given up several times meanwhile."""


@define(eq=False, repr=False)  # pytest shows what an assertion is about, and this holds all replicas
class RandomFaults:
    """One run, drawn from a seed."""

    seed: int
    by_label: bool = False
    """Whether a label says which shard a node belongs to; it changes now and then."""
    dice: Random = field(init=False)
    shards: int = field(init=False)
    stuck: float = field(init=False)
    """The share of requests that are held back."""
    placed: dict[str, str] = field(factory=dict, init=False)
    """Pods → their nodes, at the end."""
    placed_later: dict[str, str] = field(factory=dict, init=False)
    """What a scheduler that starts then finds a place for."""
    results: Counter[str] = field(factory=Counter, init=False)
    """Of proposals, and how many pods were fenced and evicted."""
    priorities: tuple[int, ...] = field(init=False)
    """Those that pods have."""
    claims: float = field(init=False)
    """The share of pods that claim a device, or a volume."""
    gangs: Gangs | None = field(default=None, init=False)
    """What becomes of pod groups; None: there are none."""
    _gang_share: float = field(init=False)
    """The share of pods that are a gang each."""
    _extended: float = field(init=False)
    """The share of other pods that an extender has a say in, which leaves every second node."""
    _by_resource: float = field(init=False)
    """The share of the pods with a device that get it for an extended resource."""
    _way: dict[str, Any] = field(init=False)
    """How others are evicted for them."""
    _processes: list[tuple[SchedulerProcess, LossyNetwork]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.shards = self.dice.choice([1, 2, 4, 6])
        self.stuck = self.dice.choice([0.0, 0.0, 0.03, 0.1])
        self.priorities = self.dice.choice([(0,), (0, 10), (0, 10, 20)])
        self.claims = self.dice.choice([0.0, 0.2, 0.4])
        # By dice of their own: without gangs a run is what it was before there were any.
        of_gangs = Random(f"{self.seed} gangs")
        self._gang_share = of_gangs.choice([0.0, 0.0, 0.1, 0.3])
        self._way = of_gangs.choice(WAYS_OF_GROUPS) if self._gang_share else {}
        self._extended = Random(f"{self.seed} with an extender").choice([0.0, 0.0, 0.3])
        self._by_resource = Random(f"{self.seed} by resource").choice([0.0, 0.0, 0.5])

    @property
    def places_all(self) -> bool:
        """Whether every pod is placed that one scheduler finds a place for.

        Where devices and victims come and go, others take what a pod waits for that has failed before, which nobody
        tells it. And a gang that has waited for a minute holds places for two, which a scheduler that has just begun
        gives to others.
        """
        return not (self.claims or self._gang_share) or len(self.priorities) == 1

    async def run(self) -> None:
        """Run it.

        Raises:
            AssertionError: a node was over its allocatable, a pod was bound twice, or is beside one that it repels.
        """
        nodes = [node(f"n{n}", cpu=2, labels={ZONE: _zone_of(f"n{n}")}) for n in range(self.dice.randint(4, 14))]
        by_label = f", nodeLabel: {POOL}" * self.by_label
        sharding = f"sharding: {{shards: {self.shards}{by_label}}}\n"
        config = HEAD + sharding + (EXTENDER_CONFIG if self._extended else "")
        kubelets = KubeletPace(stop_seconds=self.dice.uniform(0.5, 8)) if len(self.priorities) > 1 else False
        details: dict[str, Any] = {"leader_elect": True, "scheduler": False, "kubelets": kubelets, **self._way}
        extenders = [PretendExtender(EXTENDER, {"filter": leaving(_is_left)}, delay_seconds=0.05)]
        cluster_of = partial(virtual_cluster, real_seconds=120.0, extenders=extenders, **details)
        async with (
            trio.open_nursery() as network,
            cluster_of(nodes=nodes, config=config, seed=self.seed) as cluster,
        ):
            ledger, evictions, devices = Ledger(cluster), Evictions(cluster), DeviceLedger(cluster)
            rules = RuleLedger(cluster, _zone_of)
            self.gangs = Gangs(cluster) if self._gang_share else None
            if self.claims:
                await self._create_devices_and_volumes(cluster, [one.name for one in nodes])
            for _ in range(self.dice.choice([2, 3, 4])):
                await self._start(cluster, network)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._load, cluster)
                nursery.start_soon(self._break, cluster, network)
                if self.by_label:
                    nursery.start_soon(self._label, cluster, [one.name for one in nodes])
            await self._calm_down(cluster, network)
            ledger.check()
            wrong = evictions.wrong + devices.wrong + rules.wrong
            assert wrong == []
            self.results["evicted"] += len(evictions.victims)
            _check_zones(cluster)
            _check_extended(cluster)
            _check_devices_of_resources(cluster)
            self._check_gangs(cluster)
            self._count(cluster)
            await self._look_what_is_left(cluster)
            network.cancel_scope.cancel()

    async def _start(self, cluster: VirtualCluster, network: trio.Nursery, *, after_seconds: float = 0.0) -> None:
        await trio.sleep(after_seconds)
        identity, dice = f"replica-{len(cluster.schedulers)}", Random(self.dice.random())
        self._processes.append(await start_behind_lossy_network(cluster, network, identity, dice, self.stuck))

    async def _load(self, cluster: VirtualCluster) -> None:
        dice = self.dice
        for number in range(dice.randint(20, 120)):
            if dice.random() < 0.1:
                await trio.sleep(dice.uniform(0, 10))
            if self.gangs is not None and dice.random() < self._gang_share:
                cpu, priority = dice.choice(["250m", "500m", "1"]), dice.choice(self.priorities)
                mode = "PodGroup" if number % 2 else "Pod"
                of_group = {"priority": priority, "disruption_mode": mode}
                await self._create_group(f"gang{number}", dice.randint(2, 5), of_group, cpu=cpu, priority=priority)
                continue
            which, workload = dice.random(), dice.randrange(WORKLOADS)
            labels, affinity = {}, None
            if which < 0.1:
                labels = {"app": f"repelled-{workload}"}
            elif which < 0.2:
                labels = {"app": f"repels-{workload}"}
                affinity = pod_anti_affinity(pod_term(f"app=repelled-{workload}", ZONE))
            details: dict[str, Any] = {
                "cpu": dice.choice(["250m", "500m", "1"]),
                "priority": dice.choice(self.priorities),
            }
            if self._extended and dice.random() < self._extended:
                details["requests"] = {EXTENDED: 1}
            if dice.random() < self.claims:
                claimed = await self._claim(cluster, f"p{number}", dice)
                details |= claimed | {"requests": details.get("requests", {}) | claimed.get("requests", {})}
            await cluster.create(pod(f"p{number}", labels=labels, affinity=affinity, **details))

    async def _label(self, cluster: VirtualCluster, names: list[str]) -> None:
        """Give nodes other labels, of which some are back after a moment, and some are taken away."""
        dice = Random(f"{self.seed} labels")
        values = [*map(str, range(self.shards)), "blue", "green", None]
        for name in names:
            await self._set_pool(cluster, name, dice.choice(values))
        for _ in range(dice.randint(4, 24)):
            await trio.sleep(dice.choice([dice.uniform(0, 1), dice.uniform(1, 15)]))
            chosen = dice.sample(names, k=dice.randint(1, 3))
            for name in chosen:
                await self._set_pool(cluster, name, dice.choice(values))
            if dice.random() < 0.3:
                await trio.sleep(dice.uniform(0, 0.5))
                for name in chosen:
                    await self._set_pool(cluster, name, dice.choice(values))

    async def _set_pool(self, cluster: VirtualCluster, name: str, value: str | None) -> None:
        await cluster.patch(node(name), {"metadata": {"labels": {POOL: value}}})

    async def _create_group(self, name: str, size: int, of_group: dict[str, Any], **details: Any) -> None:
        """Create a group, nearly always a gang, whose pods have a rule about each other, get something, or neither."""
        assert self.gangs is not None
        dice = Random(f"{self.seed} {name}")
        kinds = ["plain", "plain", APART_ON_NODES, APART_IN_ZONES, IN_ONE_ZONE, "spread"]
        kind = dice.choice(kinds + ["claims"] * 3 * bool(self.claims) + ["extended"] * 2 * bool(self._extended))
        rules: dict[str, Any] = {
            APART_ON_NODES: {"affinity": pod_anti_affinity(pod_term(f"{kind}={name}", HOST))},
            APART_IN_ZONES: {"affinity": pod_anti_affinity(pod_term(f"{kind}={name}", ZONE))},
            IN_ONE_ZONE: {"affinity": pod_affinity(pod_term(f"{kind}={name}", ZONE))},
            "spread": {"spread": [spread_constraint(ZONE, f"{kind}={name}")]},
            "extended": {"requests": {EXTENDED: 1}},
        }
        size, cluster = size if kind == "plain" else min(size, 3), self.gangs.cluster
        if dice.random() < 0.2:
            await cluster.create(pod_group(name, **of_group))
        else:
            await self.gangs.create_group(name, size, **of_group)
        for number in range(1, size + 1):
            member = f"{name}-{number}"
            claimed = await self._claim(cluster, member, dice) if kind == "claims" else {}
            of_kind = {"labels": {kind: name}, **rules.get(kind, {}), **claimed}
            await cluster.create(pod(member, group=name, **details, **of_kind))

    async def _create_devices_and_volumes(self, cluster: VirtualCluster, names: list[str]) -> None:
        await cluster.create(device_class(extended_resource_name=GPU))
        await cluster.create(storage_class(provisioner="kubernetes.io/no-provisioner"))
        more = 2 if self._gang_share else 0
        for name in names:
            found = [device(f"gpu-{number}") for number in range(self.dice.randint(0, 2) + more)]
            if found:
                await cluster.create(resource_slice(name, *found))
            if self.dice.random() < 0.5:
                await cluster.create(persistent_volume(f"on-{name}", on={"kubernetes.io/hostname": name}))

    async def _claim(self, cluster: VirtualCluster, name: str, dice: Random) -> dict[str, Any]:
        """Create a claim for a pod of the same name, which gets what is returned."""
        if dice.random() < 0.7:
            if self._by_resource and dice.random() < self._by_resource:
                return {"requests": {GPU: 1}}
            await cluster.create(resource_claim(name))
            return {"claims": [name]}
        await cluster.create(persistent_volume_claim(name))
        return {"volumes": [name]}

    async def _break(self, cluster: VirtualCluster, network: trio.Nursery) -> None:
        dice = self.dice
        for _ in range(dice.randint(1, 6)):
            await trio.sleep(dice.uniform(1, 25))
            running = [one for one in self._processes if one[0].running]
            which = dice.random()
            if not running or which < 0.15:
                await self._start(cluster, network)
                continue
            process, link = dice.choice(running)
            if which < 0.4:
                await process.kill()
                network.start_soon(partial(self._start, cluster, network, after_seconds=dice.uniform(0, 20)))
            elif which < 0.6:
                network.start_soon(self._restart, process, cluster, network)
            else:
                link.cut()
                network.start_soon(_mend, link, dice.uniform(0.5, 48))

    async def _restart(self, process: SchedulerProcess, cluster: VirtualCluster, network: trio.Nursery) -> None:
        await process.stop(drain_seconds=60)
        await self._start(cluster, network)

    async def _calm_down(self, cluster: VirtualCluster, network: trio.Nursery) -> None:
        await trio.sleep(60)
        for _process, link in self._processes:
            link.stuck = 0.0
            link.mend()
        for process in cluster.schedulers:
            if process.has_failed:  # whoever was cut off for too long
                await process.failed()
        if not any(process.running for process, _link in self._processes):
            await self._start(cluster, network)
        await trio.sleep(QUIET_SECONDS)

    def _check_gangs(self, cluster: VirtualCluster) -> None:
        """No gang has some of its pods bound, unless one was evicted; none has been so for long."""
        left = Counter(pod.group_key for pod in cluster.pods() if pod.metadata.deletion_timestamp is None)
        for gang in () if self.gangs is None else self.gangs.by_name.values():
            bound = 0 if self.gangs is None else self.gangs.bound(gang.name)
            assert bound in (0, gang.size) or left[f"default/{gang.name}"] < gang.size, (gang, bound)
            self.results["complete gangs"] += gang.complete_at is not None

    def _count(self, cluster: VirtualCluster) -> None:
        for process in cluster.schedulers:
            if process.assembly is None:
                continue
            sharding = sharding_of(process)
            self.results += sharding.proposals.results
            self.results["fenced"] += sharding.takeover.fenced
            if process.running:
                left = (list(sharding.owned.under_way), sharding.proposals.bound, sharding.owned.evicting)
                assert left == ([], set(), {})
                asked = sharding.groups.unfinished
                assert asked == 0

    async def _look_what_is_left(self, cluster: VirtualCluster) -> None:
        self.placed = {name: at for name, at in cluster.placements().items() if at}
        for process in cluster.schedulers:
            if process.running:
                await process.stop(drain_seconds=60)
        await cluster.start_scheduler("fresh")
        if self.gangs is None:
            await cluster.settle()
        else:  # one that waits holds places and releases them again and again
            await trio.sleep(QUIET_SECONDS)
        after = cluster.placements()
        self.placed_later = {name: at for name, at in after.items() if at and name not in self.placed}


async def _mend(link: LossyNetwork, seconds: float) -> None:
    await trio.sleep(seconds)
    link.mend()


def _zone_of(node_name: str) -> str:
    return f"z{int(node_name.removeprefix('n')) % ZONES}"


def _is_left(node_name: str) -> bool:
    return int(node_name.removeprefix("n")) % 2 == 0


def _bound_with(cluster: VirtualCluster, resource: str) -> Iterator[Pod]:
    """The pods on nodes that request *resource*."""
    for one in cluster.pods():
        resources = one.spec.containers[0].resources
        if one.node_name and resources is not None and resource in (resources.requests or {}):
            yield one


def _check_extended(cluster: VirtualCluster) -> None:
    for one in _bound_with(cluster, EXTENDED):
        assert _is_left(one.node_name), one.name


def _check_devices_of_resources(cluster: VirtualCluster) -> None:
    """Each pod has a claim with a device of its node."""
    for one in _bound_with(cluster, GPU):
        claim_status = one.status.extended_resource_claim_status
        assert claim_status is not None, one.name
        claim = cluster.api.store.get("resourceclaims.resource.k8s.io", f"default/{claim_status.resource_claim_name}")
        assert claim is not None, one.name
        (result,) = claim.fields["status"]["allocation"]["devices"]["results"]
        assert result["pool"] == one.node_name, one.name


def _app(one: Pod) -> tuple[str, str]:
    kind, _dash, workload = (one.metadata.labels or {}).get("app", "").partition("-")
    return kind, workload


def _check_zones(cluster: VirtualCluster) -> None:
    zones: dict[tuple[str, str], set[str]] = {}
    for one in cluster.pods():
        if one.node_name:
            zones.setdefault(_app(one), set()).add(_zone_of(one.node_name))
    for workload in map(str, range(WORKLOADS)):
        assert not zones.get(("repels", workload), set()) & zones.get(("repelled", workload), set()), workload
