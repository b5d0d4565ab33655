"""Random changes of a cluster, of everything that makes the scheduler look at pods again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar

import msgspec
from attrs import define, field, frozen
from msgspec import structs

from trio_sched.objects.amounts.quantity import Quantity, parse_nano
from trio_sched.objects.node import Node, NodeCondition
from trio_sched.objects.pod import Container, Pod, ResourceRequirements
from trio_sched.objects.taint import Taint, Toleration
from trio_sched.testing.conformance.cluster_state import (
    NODE,
    RUNNING,
    WAITING,
    Change,
    ClusterState,
    Kind,
    from_plain,
    key_of,
    plain_of,
)

_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_VALUES: Final = ("true", "false", "a", "b", "0", "1", "2", "10", "100")
_AMOUNTS: Final = ("0", "1", "2", "4", "16", "64", "1Gi", "64Gi")
_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure")
_STATUSES: Final = ("True", "False", "Unknown")
_NAMES: Final = ("metadata", "kind", "apiVersion")
_MAX_NODES: Final = 4
_MAX_PODS: Final = 6

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


@frozen
class Edit:
    """A label, an annotation, a taint, a condition or a field with one value, of objects of one kind."""

    kind: Kind
    facet: str
    """``label``, ``annotation``, ``taint``, ``condition``, ``amount`` or ``field``."""
    key: str
    """The path of a field, separated by newlines."""
    value: Any

    def apply(self, one: Any) -> Any:
        """*one* with it; without it, if it has it already."""
        if self.facet in ("label", "annotation"):
            name = f"{self.facet}s"
            if not isinstance(one, Node | Pod):
                plain = plain_of(one)
                known = plain["metadata"].setdefault(name, {})
                if known.pop(self.key, None) != self.value:
                    known[self.key] = self.value
                return from_plain(self.kind, plain, one)
            known = getattr(one.metadata, name) or {}
            changed = {key: value for key, value in known.items() if key != self.key}
            if known.get(self.key) != self.value:
                changed[self.key] = self.value
            return structs.replace(one, metadata=structs.replace(one.metadata, **{name: changed or None}))
        if self.facet == "field":
            return self._with_field(one)
        if self.facet == "amount":
            known = one.status.allocatable or {}
            amount = "1" if known.get(self.key) == self.value else self.value
            status = structs.replace(one.status, allocatable={**known, self.key: amount})
            return structs.replace(one, status=status)
        if self.facet == "taint":
            taint = Taint(key=self.key, value=self.value, effect="NoSchedule")
            taints = tuple(known for known in one.spec.taints or () if known != taint)
            if len(taints) == len(one.spec.taints or ()):
                taints = (*taints, taint)
            return structs.replace(one, spec=structs.replace(one.spec, taints=taints or None))
        others = tuple(known for known in one.status.conditions or () if known.type != self.key)
        conditions = (*others, NodeCondition(type=self.key, status=self.value))
        return structs.replace(one, status=structs.replace(one.status, conditions=conditions))

    def _with_field(self, one: Any) -> Any:
        plain = plain_of(one)
        holder: Any = plain
        *path, last = self.key.split("\n")
        for name in path:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict):
            return one
        holder[last] = self.value
        return from_plain(self.kind, plain, one)


def fields_of(plain: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of every field of a plain object that holds no other, besides its metadata."""
    for name, value in plain.items():
        if not path and name in _NAMES:
            continue
        inner = f"{path}\n{name}" if path else name
        if isinstance(value, dict):
            yield from fields_of(value, inner)
        elif isinstance(value, str | int | float):
            yield inner, value


@define(eq=False)
class Changes:
    """Makes clusters and changes of them."""

    rng: Random
    nodes: Sequence[Node]
    running: Sequence[Pod]
    waiting: Sequence[Pod]
    objects: Mapping[Kind, Sequence[Any]]
    """Examples by kind, besides pods and nodes."""
    own_texts: Sequence[str]
    """Texts that the plugin may look for."""
    other_texts: Sequence[str]
    """Texts of the objects."""
    effective: list[Edit] = field(factory=list)
    """Edits to which the plugin has been seen to react."""
    resources: Sequence[str] = field(init=False)
    _count: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        requested = [name for one in [*self.running, *self.waiting] for name in _requested(one)]
        self.resources = list(dict.fromkeys(["cpu", "memory", "pods", *requested]))

    # --- clusters ---------------------------------------------------------------------------------------------------

    def cluster_state(self) -> ClusterState:
        """A small cluster: of few nodes a plugin often rejects all."""
        nodes = self._some(self.nodes, 1, 3)
        names = [one.name for one in nodes]
        running = [self._on_node(one, names) for one in self._some(self.running, 0, 3)]
        waiting = self._some(self.waiting, 1, 4)
        found: dict[Kind, list[Any]] = {NODE: nodes, RUNNING: running, WAITING: waiting}
        for kind, examples in self.objects.items():
            found[kind] = self._some(examples, 0, len(examples))
        cluster_state = ClusterState({kind: {key_of(kind, one): one for one in ones} for kind, ones in found.items()})
        for _ in range(self.rng.randint(0, 6)):
            cluster_state = cluster_state.after(self.change(cluster_state))
        return cluster_state

    def _some(self, examples: Sequence[T], fewest: int, most: int) -> list[T]:
        count = min(len(examples), self.rng.randint(fewest, max(fewest, most)))
        return self.rng.sample(list(examples), count)

    def _on_node(self, pod: Pod, names: Sequence[str]) -> Pod:
        self._count += 1
        name = f"{pod.name}-{self._count}"
        metadata = structs.replace(pod.metadata, name=name, uid=f"uid-of-{name}")
        spec = structs.replace(pod.spec, node_name=self.rng.choice(names), scheduling_gates=None)
        return structs.replace(pod, metadata=metadata, spec=spec)

    # --- changes ----------------------------------------------------------------------------------------------------

    def change(self, cluster_state: ClusterState) -> Change:
        """Any change of *cluster_state*."""
        ways: list[Callable[[ClusterState], Change | None]] = [
            *[self._change_node] * 5,
            *[self._add_or_delete_node] * 2,
            *[self._add_or_delete_running] * 3,
            self._change_running,
            *[self._change_waiting] * 2,
            self._add_or_delete_waiting,
            *[self._change_object] * (4 if self.objects else 0),
        ]
        if self.effective:
            ways += [self._make_effective_edit] * (len(ways) // 2)
        while True:
            found = self.rng.choice(ways)(cluster_state)
            if found is not None and found.old != found.new:
                return found

    def _make_effective_edit(self, cluster_state: ClusterState) -> Change | None:
        edit = self.rng.choice(self.effective)
        objects = list(cluster_state.objects.get(edit.kind, {}).values())
        if not objects:
            return None
        old = self.rng.choice(objects)
        return Change(edit.kind, old, edit.apply(old))

    def _add_or_delete_node(self, cluster_state: ClusterState) -> Change | None:
        absent = [one for one in self.nodes if one.name not in cluster_state.nodes]
        if absent and len(cluster_state.nodes) < _MAX_NODES and self.rng.random() < 0.6:
            return Change(NODE, None, self._changed_node(self.rng.choice(absent)))
        used = {one.node_name for one in cluster_state.running.values()}
        empty = [one for name, one in cluster_state.nodes.items() if name not in used]
        return Change(NODE, self.rng.choice(empty), None) if empty and len(cluster_state.nodes) > 1 else None

    def _change_node(self, cluster_state: ClusterState) -> Change | None:
        if not cluster_state.nodes:
            return None
        old = self.rng.choice(list(cluster_state.nodes.values()))
        return Change(NODE, old, self._changed_node(old))

    def _changed_node(self, old: Node) -> Node:
        of_any: list[Callable[[Node], Node]] = [self._with_label, self._with_label, self._with_annotation]
        of_nodes = [self._with_taint, self._with_taint, self._with_cordon, self._with_amount]
        return self.rng.choice([*of_any, *of_nodes, self._with_condition, self._with_feature])(old)

    def _with_label(self, one: S) -> S:
        metadata: Any = one.metadata  # type: ignore[attr-defined]  # every object has it
        labels = self._changed_map(metadata.labels)
        return structs.replace(one, metadata=structs.replace(metadata, labels=labels))

    def _with_annotation(self, one: S) -> S:
        metadata: Any = one.metadata  # type: ignore[attr-defined]  # every object has it
        return structs.replace(
            one, metadata=structs.replace(metadata, annotations=self._changed_map(metadata.annotations))
        )

    def _with_taint(self, one: Node) -> Node:
        taints = list(one.spec.taints or ())
        if taints and self.rng.random() < 0.5:
            taints.pop(self.rng.randrange(len(taints)))
        else:
            taints.append(Taint(key=self._key(), value=self._value(), effect=self.rng.choice(_EFFECTS)))
        return structs.replace(one, spec=structs.replace(one.spec, taints=tuple(taints) or None))

    def _with_cordon(self, one: Node) -> Node:
        return structs.replace(one, spec=structs.replace(one.spec, unschedulable=not one.spec.unschedulable))

    def _with_amount(self, one: Node) -> Node:
        name = self.rng.choice([*self.resources, self._key()])
        amounts = {**(one.status.allocatable or {}), name: self.rng.choice(_AMOUNTS)}
        return structs.replace(one, status=structs.replace(one.status, allocatable=amounts, capacity=amounts))

    def _with_condition(self, one: Node) -> Node:
        kind = self.rng.choice([*_CONDITIONS, *self.own_texts])
        others = [known for known in one.status.conditions or () if known.type != kind]
        conditions = (*others, NodeCondition(type=kind, status=self.rng.choice(_STATUSES)))
        return structs.replace(one, status=structs.replace(one.status, conditions=conditions))

    def _with_feature(self, one: Node) -> Node:
        features = set(one.status.declared_features or ()) ^ {self._key()}
        return structs.replace(
            one, status=structs.replace(one.status, declared_features=tuple(sorted(features)) or None)
        )

    def _add_or_delete_running(self, cluster_state: ClusterState) -> Change | None:
        pods = list(cluster_state.running.values())
        examples = [*self.running, *self.waiting]
        if examples and cluster_state.nodes and len(pods) < _MAX_PODS and self.rng.random() < 0.4:
            one = self._on_node(self.rng.choice(examples), list(cluster_state.nodes))
            return Change(RUNNING, None, self._with_label(one) if self.rng.random() < 0.5 else one)
        return Change(RUNNING, self.rng.choice(pods), None) if pods else None

    def _change_running(self, cluster_state: ClusterState) -> Change | None:
        if not cluster_state.running:
            return None
        old = self.rng.choice(list(cluster_state.running.values()))
        ways: list[Callable[[Pod], Pod]] = [self._with_label, self._with_less]
        return Change(RUNNING, old, self.rng.choice(ways)(old))

    def _change_waiting(self, cluster_state: ClusterState) -> Change | None:
        if not cluster_state.waiting:
            return None
        old = self.rng.choice(list(cluster_state.waiting.values()))
        ways: list[Callable[[Pod], Pod]] = [self._with_label, self._with_annotation]
        ways += [self._with_toleration, self._with_fewer_gates]
        return Change(WAITING, old, self.rng.choice(ways)(old))

    def _add_or_delete_waiting(self, cluster_state: ClusterState) -> Change | None:
        pods = list(cluster_state.waiting.values())
        absent = [one for one in self.waiting if one.uid not in cluster_state.waiting]
        if absent and len(pods) < _MAX_PODS and self.rng.random() < 0.6:
            return Change(WAITING, None, self.rng.choice(absent))
        return Change(WAITING, self.rng.choice(pods), None) if len(pods) > 1 else None

    def _with_less(self, one: Pod) -> Pod:
        containers = one.spec.containers or ()
        smaller = tuple(map(_halved, containers))
        return structs.replace(one, spec=structs.replace(one.spec, containers=smaller))

    def _with_toleration(self, one: Pod) -> Pod:
        added = Toleration(key=self._key(), operator="Exists")
        tolerations = (*(one.spec.tolerations or ()), added)
        return structs.replace(one, spec=structs.replace(one.spec, tolerations=tolerations))

    def _with_fewer_gates(self, one: Pod) -> Pod:
        gates = (one.spec.scheduling_gates or ())[1:]
        return structs.replace(one, spec=structs.replace(one.spec, scheduling_gates=gates or None))

    # --- objects of other kinds -------------------------------------------------------------------------------------

    def _change_object(self, cluster_state: ClusterState) -> Change | None:
        kind = self.rng.choice(list(self.objects))
        present = cluster_state.objects.get(kind, {})
        absent = [one for one in self.objects[kind] if key_of(kind, one) not in present]
        chance = self.rng.random()
        if absent and (chance < 0.3 or not present):
            return Change(kind, None, self.rng.choice(absent))
        if not present:
            return None
        old = self.rng.choice(list(present.values()))
        if chance < 0.55:
            return Change(kind, old, None)
        return Change(kind, old, self._changed_object(kind, old, self.objects[kind]))

    def _changed_object(self, kind: Kind, old: Any, examples: Sequence[Any]) -> Any:
        """*old* with a part of another example, other labels, or another value somewhere."""
        plain, chance = plain_of(old), self.rng.random()
        if chance < 0.4:
            other = plain_of(self.rng.choice(list(examples)))
            plain.update({name: part for name, part in other.items() if name not in _NAMES})
        elif chance < 0.65:
            facet = self.rng.choice(("labels", "annotations"))
            plain["metadata"][facet] = self._changed_map(plain["metadata"].get(facet))
        else:
            leaves = list(_leaves({name: part for name, part in plain.items() if name not in _NAMES}))
            if not leaves:
                return old
            holder, key = self.rng.choice(leaves)
            holder[key] = self._other_value(holder[key])
        return from_plain(kind, plain, old)

    def _other_value(self, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return type(value)(self.rng.choice((0, 1, value + 1, value * 2)))
        return self._value()

    # --- texts ------------------------------------------------------------------------------------------------------

    def _changed_map(self, known: Mapping[str, str] | None) -> dict[str, str]:
        changed = dict(known or {})
        if changed and self.rng.random() < 0.35:
            del changed[self.rng.choice(list(changed))]
        else:
            changed[self._key()] = self._value()
        return changed

    def _key(self) -> str:
        return self._text(())

    def _value(self) -> str:
        return self._text(_VALUES)

    def _text(self, more: Iterable[str]) -> str:
        lists = [texts for texts in (self.own_texts, self.own_texts, self.other_texts, list(more)) if texts]
        return self.rng.choice(self.rng.choice(lists or [_VALUES]))


def _leaves(value: Any) -> Iterable[tuple[Any, Any]]:
    """Every place in a plain object that holds no other, as the dict or list that it is in and its key there."""
    places = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(places):
        if isinstance(part, dict | list):
            yield from _leaves(part)
        elif part is not None:
            yield value, key


def _requested(pod: Pod) -> Iterable[str]:
    return [name for one in pod.spec.containers or () if one.resources for name in one.resources.requests or {}]


def _halved(container: Container) -> Container:
    requests = (container.resources.requests or {}) if container.resources else {}
    half: dict[str, Quantity] = {name: f"{parse_nano(amount) // 2_000_000}m" for name, amount in requests.items()}
    return structs.replace(container, resources=ResourceRequirements(requests=half) if half else None)
