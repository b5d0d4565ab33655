"""A cluster that changes at random, kept twice: as the engine keeps it, and as plain dicts; and random pods for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, field
from msgspec.structs import replace
from plain_topology import HOSTNAME, ZONE, PlainCluster

from trio_sched.engine.cache import Cache
from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.objects.pod_groups.workload import LabelSelectorSpec, MapSelectorSpec, ReplicaSet, Service
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import FakeHandle, node, node_affinity, pod, term

NODES = [f"n{i}" for i in range(9)]
NAMESPACES = ("red", "blue", "ghost")
"""Of *ghost* there never is an object."""
KEYS = (ZONE, ZONE, "rack", "rack", HOSTNAME)


@define(eq=False, kw_only=True)
class VersionedHandle(FakeHandle):
    """Like the real one, counts the changes of each kind."""

    versions: Counter[str] = field(factory=Counter)

    def version(self, kind: str) -> int:
        return self.versions[kind]


class RandomObjects:
    """Draws objects in such a way that they often have something to do with each other."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.uids = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def a_node(self, name: str) -> Node:
        labels: dict[str, str] = {}
        if self.chance(0.85):
            labels[ZONE] = self.rng.choice("abc")
        if self.chance(0.7):
            labels["rack"] = self.rng.choice("12345")
        if self.chance(0.5):
            labels["disk"] = self.rng.choice(["ssd", "hdd"])
        if self.chance(0.1):
            labels[HOSTNAME] = "twin"
        taints = ["dedicated:NoSchedule"] if self.chance(0.2) else ()
        made = node(name, cpu=2, labels=labels, taints=taints, unschedulable=self.chance(0.05))
        if self.chance(0.05):
            made = replace(made, metadata=replace(made.metadata, labels=None))
        return made

    def labels(self) -> dict[str, str]:
        labels = {"app": self.rng.choice("abc")} if self.chance(0.9) else {}
        if self.chance(0.5):
            labels["track"] = self.rng.choice("xy")
        return labels

    def selector(self) -> LabelSelector | None:
        values = tuple(self.rng.sample("abc", self.rng.randint(1, 2)))
        return self.rng.choice(
            [
                *[LabelSelector(match_labels={"app": values[0]})] * 5,
                LabelSelector(match_labels={"track": "x"}),
                LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In", values),)),
                LabelSelector(match_expressions=(LabelSelectorRequirement("app", "NotIn", values),)),
                LabelSelector(
                    match_labels={"app": values[0]},
                    match_expressions=(LabelSelectorRequirement("track", "Exists"),),
                ),
                LabelSelector(match_expressions=(LabelSelectorRequirement("track", "DoesNotExist"),)),
                LabelSelector(),
                None,
                LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))
                if self.chance(0.5)
                else LabelSelector(),
            ]
        )

    def namespace_selector(self) -> LabelSelector | None:
        return self.rng.choice(
            [
                *[None] * 5,
                LabelSelector(),
                LabelSelector(match_labels={"team": "one"}),
                LabelSelector(match_expressions=(LabelSelectorRequirement("team", "NotIn", ("two",)),)),
                LabelSelector(match_expressions=(LabelSelectorRequirement("team", "DoesNotExist"),)),
                LabelSelector(match_expressions=(LabelSelectorRequirement("team", "Exists"),)),
            ]
        )

    def constraint(self, action: str | None = None) -> TopologySpreadConstraint:
        action = action or self.rng.choice(["DoNotSchedule", "ScheduleAnyway"])
        return TopologySpreadConstraint(
            max_skew=self.rng.choice([1, 1, 2, 3]),
            topology_key=self.rng.choice(KEYS),
            when_unsatisfiable=action,
            label_selector=self.selector(),
            min_domains=self.rng.choice([None, None, 1, 2, 4]) if action == "DoNotSchedule" else None,
            node_affinity_policy=self.rng.choice([None, "Honor", "Ignore"]),
            node_taints_policy=self.rng.choice([None, "Honor", "Ignore"]),
            match_label_keys=self.rng.choice([None, None, None, ("track",), ("track", "nothing")]),
        )

    def term(self) -> PodAffinityTerm:
        return PodAffinityTerm(
            label_selector=self.selector(),
            topology_key=self.rng.choice(KEYS),
            namespaces=self.rng.choice([None, None, None, ("red",), ("blue", "ghost")]),
            namespace_selector=self.namespace_selector(),
        )

    def wish(self, most: int) -> PodAffinity | None:
        terms = tuple(self.term() for _ in range(self.rng.randint(0, most)))
        weighted = tuple(
            WeightedPodAffinityTerm(self.rng.choice([1, 10, 100]), self.term()) for _ in range(self.rng.randint(0, 2))
        )
        if not terms and not weighted:
            return None
        return PodAffinity(terms or None, weighted or None)

    def affinity(self, share: float) -> Affinity | None:
        places = node_affinity(term("disk In ssd")) if self.chance(0.1) else Affinity()
        if not self.chance(share):
            return places if places.node_affinity else None
        near = self.wish(2) if self.chance(0.6) else None
        far = self.wish(2) if self.chance(0.6) else None
        return Affinity(places.node_affinity, near, far)

    def a_pod(self, *, incoming: bool, **more: Any) -> Pod:
        """An *incoming* pod has constraints and terms more often than one that is there."""
        self.uids += 1
        owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=self.rng.choice("vw"), controller=True)
        made = pod(
            f"p{self.uids}",
            namespace=self.rng.choice(["red", "red", "red", "blue", "ghost"]),
            uid=f"uid-{self.uids}",
            cpu=self.rng.choice([None, "100m", "500m"]),
            labels=self.labels(),
            owner=owner if self.chance(0.3) else None,
            priority=self.rng.choice([None, 5]),
            node_selector={"disk": "ssd"} if self.chance(0.15) else None,
            affinity=self.affinity(0.45 if incoming else 0.25),
            tolerations=self.rng.choice([(), (), ("dedicated",), ("",)]),
            spread=[self.constraint() for _ in range(self.rng.randint(0, 3))] if incoming and self.chance(0.6) else (),
            **more,
        )
        return self.going(made) if not incoming and self.chance(0.15) else made

    def going(self, made: Pod) -> Pod:
        return replace(made, metadata=replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


class ChangingCluster:
    """The same cluster twice; each step changes both in the same way."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.draw = RandomObjects(self.rng)
        self.cache = Cache()
        self.plain = PlainCluster()
        self.handle = VersionedHandle()
        self.handle.nodes = NodeColumns(self.cache.table)
        for name in NODES[:6]:
            self.node_changes(name)
        for _ in range(10):
            self.pod_appears()
        self.services_change()
        for name in ("red", "blue"):
            self.namespace_changes(name)

    def step(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self.pod_appears: 5,
            self.pod_goes: 4,
            self.pod_changes: 4,
            self.node_changes: 2,
            self.node_goes: 1,
            self.namespace_changes: 1,
            self.services_change: 1,
        }
        self.rng.choices(list(steps), weights=list(steps.values()))[0]()

    # --- pods -------------------------------------------------------------------------------------------------------

    def pod_appears(self) -> None:
        self.arrives(self.draw.a_pod(incoming=False, node_name=self.rng.choice(NODES)))

    def arrives(self, new: Pod) -> None:
        self.cache.add(new)
        self.plain.pods[new.uid], self.plain.place[new.uid] = new, new.node_name

    def assumed(self, new: Pod, node_name: str) -> None:
        self.cache.assume(new, node_name)
        self.plain.pods[new.uid], self.plain.place[new.uid] = new, node_name

    def pod_goes(self) -> None:
        if len(self.plain.pods) < 8:
            return
        uid = self.rng.choice(list(self.plain.pods))
        if self.cache.is_assumed(uid):
            self.cache.forget(uid)
        else:
            self.cache.remove(uid)
        del self.plain.pods[uid], self.plain.place[uid]

    def pod_changes(self) -> None:
        """Labels, the time of deletion, an affinity (which no real pod changes), or a binding that is confirmed."""
        uid = self.rng.choice(list(self.plain.pods))
        old = self.plain.pods[uid]
        if self.cache.is_assumed(uid):
            new = replace(old, spec=replace(old.spec, node_name=self.plain.place[uid]))
            self.cache.add(new)
        else:
            if self.rng.random() < 0.5:
                new = replace(old, metadata=replace(old.metadata, labels=self.draw.labels() or None))
            elif self.rng.random() < 0.7:
                new = self.draw.going(old)
            else:
                new = replace(old, spec=replace(old.spec, affinity=self.draw.affinity(0.5)))
            self.cache.update(new)
        self.plain.pods[uid] = new

    # --- nodes ------------------------------------------------------------------------------------------------------

    def node_changes(self, name: str | None = None) -> None:
        """One that is there changes; or one comes, on which pods may be already."""
        name = name or self.rng.choice(NODES)
        new = self.draw.a_node(name)
        old = self.plain.nodes.get(name)
        if old is not None and self.rng.random() < 0.5:
            new = replace(old, spec=new.spec)
        self.cache.add_node(new)
        self.plain.nodes[name] = new

    def node_goes(self) -> None:
        if len(self.plain.nodes) > 3:
            name = self.rng.choice(list(self.plain.nodes))
            self.cache.remove_node(name)
            del self.plain.nodes[name]

    # --- what else counts -------------------------------------------------------------------------------------------

    def namespace_changes(self, name: str | None = None) -> None:
        name = name or self.rng.choice(("red", "blue"))
        self.plain.namespaces[name] = self.rng.choice([{}, {"team": "one"}, {"team": "two"}])
        self.show("Namespace", [Namespace(ObjectMeta(n, labels=has)) for n, has in self.plain.namespaces.items()])

    def services_change(self) -> None:
        selectors: list[dict[str, str] | None] = [{"app": "a"}, {"app": "b"}, {"track": "x"}, {}, None]
        self.plain.services = [
            Service(ObjectMeta(str(i), self.rng.choice(NAMESPACES)), MapSelectorSpec(self.rng.choice(selectors)))
            for i in range(self.rng.randint(0, 3))
        ]
        self.plain.replica_sets = {
            ("red", "v"): ReplicaSet(ObjectMeta("v", "red"), LabelSelectorSpec(LabelSelector({"app": "a"}))),
            ("blue", "w"): ReplicaSet(ObjectMeta("w", "blue"), LabelSelectorSpec(LabelSelector({"track": "y"}))),
        }
        self.show("Service", self.plain.services)
        self.show("ReplicaSet", list(self.plain.replica_sets.values()))

    def show(self, kind: str, objects: list[Any]) -> None:
        self.handle.known_objects[kind] = objects
        self.handle.versions[kind] += 1
