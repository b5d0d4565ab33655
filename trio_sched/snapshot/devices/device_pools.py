"""Pools of devices: slices that belong together, as far as one node can use them, in the order in which they are tried.

Source: pool gathering of the structured allocator of Kubernetes 1.36, with its rules about what is complete and valid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import structs

from trio_sched.objects.resource.device_taint_rule import DeviceTaintRule
from trio_sched.objects.resource.resource_slice import Device, DeviceTaint, ResourceSlice
from trio_sched.objects.selector import NodeSelector
from trio_sched.snapshot.devices.allocated_devices import DeviceId
from trio_sched.snapshot.devices.device_models import DeviceModel, DeviceModels, nano

PoolKey: TypeAlias = tuple[str, str]
"""Driver and name of a pool."""

NodeMatch: TypeAlias = Callable[[str | None, bool | None, NodeSelector | None], bool]
"""Whether the node is meant by a name, by "all nodes", or by a selector."""

CounterSets: TypeAlias = Mapping[str, Mapping[str, int]]
"""Counter set → counter → amount in nano units."""


class PoolDevice:
    """A device of a slice; one object for all nodes that can use it."""

    __slots__ = ("device", "id", "model", "slice")

    def __init__(self, slice_: ResourceSlice, device: Device, model: DeviceModel) -> None:
        spec = slice_.spec
        self.id = DeviceId(spec.driver, spec.pool.name, device.name)
        self.device = device
        self.slice = slice_
        self.model = model

    @property
    def consumes(self) -> tuple[tuple[str, str, int], ...]:
        """(counter set, counter, amount in nano units) for what it consumes when it is allocated."""
        return self.model.consumes

    @property
    def capacity(self) -> Mapping[str, int]:
        """Capacity → amount in nano units."""
        return self.model.capacity

    @property
    def is_shareable(self) -> bool:
        """Whether several claims can have it at once."""
        return bool(self.device.allow_multiple_allocations)


class SliceEntry:
    """A slice and its devices."""

    __slots__ = ("devices", "slice")

    def __init__(self, slice_: ResourceSlice, models: DeviceModels) -> None:
        devices, of_devices = models.of(slice_.spec.driver, slice_.spec.devices or ())
        self.slice = structs.replace(slice_, spec=structs.replace(slice_.spec, devices=devices))
        pairs = zip(devices, of_devices, strict=True)
        self.devices = tuple([PoolDevice(self.slice, device, model) for device, model in pairs])

    @property
    def name(self) -> str:
        """The name of the slice."""
        return self.slice.metadata.name

    @property
    def pool_key(self) -> PoolKey:
        """The pool that it is part of."""
        return self.slice.spec.driver, self.slice.spec.pool.name

    @property
    def is_for_one_node(self) -> bool:
        """Whether no other node has anything to do with it."""
        spec = self.slice.spec
        return bool(spec.node_name) and not spec.shared_counters


def with_taints(published: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """*published* with the taints of *rules*; itself if none of them selects one of its devices."""
    spec = published.spec
    added: dict[int, list[DeviceTaint]] = {}
    for rule in rules:
        selector = rule.spec.device_selector
        if selector is None:  # unlike an empty one, it selects no device
            continue
        if selector.driver not in (None, spec.driver) or selector.pool not in (None, spec.pool.name):
            continue
        for position, device in enumerate(spec.devices or ()):
            if selector.device in (None, device.name):
                added.setdefault(position, []).append(rule.spec.taint)
    if not added:
        return published
    devices = tuple(
        structs.replace(device, taints=(*(device.taints or ()), *added[position])) if position in added else device
        for position, device in enumerate(spec.devices or ())
    )
    return structs.replace(published, spec=structs.replace(spec, devices=devices))


class PoolSlices:
    """All slices of a pool, for whichever node, counted by their generations."""

    __slots__ = ("_consuming", "_of_generation", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, SliceEntry] = {}
        """By the names of the slices."""
        self._of_generation: Counter[int] = Counter()
        self._consuming = 0

    def add(self, entry: SliceEntry) -> None:
        """The pool has *entry* now."""
        self.entries[entry.name] = entry
        self._of_generation[entry.slice.spec.pool.generation] += 1
        self._consuming += _consumes(entry)

    def remove(self, entry: SliceEntry) -> None:
        """The pool does not have *entry* any more."""
        del self.entries[entry.name]
        generation = entry.slice.spec.pool.generation
        self._of_generation[generation] -= 1
        if not self._of_generation[generation]:
            del self._of_generation[generation]
        self._consuming -= _consumes(entry)

    @property
    def newest(self) -> int:
        """The newest generation."""
        return max(self._of_generation)

    def count(self, generation: int) -> int:
        """How many slices of *generation* there are."""
        return self._of_generation[generation]

    def others(self, generation: int, names: Container[str]) -> list[SliceEntry]:
        """The slices of *generation* that are not among *names*, if any slice has devices that consume counters."""
        if not self._consuming:
            return []
        return [
            entry
            for entry in self.entries.values()
            if entry.slice.spec.pool.generation == generation and entry.name not in names
        ]


def _consumes(entry: SliceEntry) -> bool:
    return any(one.consumes_counters for one in entry.slice.spec.devices or ())


class Pool:
    """A pool as one node sees it. Incomplete and invalid ones have no devices."""

    __slots__ = ("counter_sets", "devices", "is_incomplete", "is_invalid", "key", "other_devices")

    def __init__(
        self,
        key: PoolKey,
        *,
        devices: tuple[PoolDevice, ...] = (),
        other_devices: tuple[PoolDevice, ...] = (),
        counter_sets: CounterSets | None = None,
        is_incomplete: bool = False,
        is_invalid: bool = False,
    ) -> None:
        self.key = key
        self.devices = devices
        """In the order in which they are tried."""
        self.other_devices = other_devices
        """Devices that the node cannot use, but which consume counters of the pool."""
        self.counter_sets: CounterSets = counter_sets or {}
        self.is_incomplete = is_incomplete
        self.is_invalid = is_invalid

    def __str__(self) -> str:
        return "/".join(self.key)

    @property
    def is_usable(self) -> bool:
        """Whether devices can be allocated from it."""
        return not (self.is_incomplete or self.is_invalid)

    @property
    def has_binding_conditions(self) -> bool:
        """Whether any of its devices has to be made ready once it is allocated; such pools are tried last."""
        return any(one.device.binding_conditions is not None for one in self.devices)


def gather_pools(
    slices: Iterable[SliceEntry],
    matches: NodeMatch,
    slices_of_pool: Callable[[PoolKey], PoolSlices],
    *,
    partitionable: bool = True,
    counters_belong_to_nodes: bool = False,
) -> list[Pool]:
    """The pools of one node, in the order in which they are tried.

    Args:
        slices: those that may be for the node.
        matches: whether the node is meant.
        slices_of_pool: gives all slices of a pool.
        partitionable: gate DRAPartitionableDevices.
        counters_belong_to_nodes: slices with shared counters are for the nodes that they name, too.
    """
    pools: dict[PoolKey, list[SliceEntry]] = {}
    for entry in slices:
        if _is_relevant(entry, matches, partitionable, counters_belong_to_nodes):
            _add(pools, entry)
    found: list[Pool] = []
    for key, entries in pools.items():
        spec = entries[0].slice.spec
        others: list[SliceEntry] = []
        if len(entries) != spec.pool.resource_slice_count:
            generation, of_pool = spec.pool.generation, slices_of_pool(key)
            if of_pool.newest > generation:
                continue  # the driver is replacing it, and the node has nothing in what comes
            if of_pool.count(generation) != spec.pool.resource_slice_count:
                found.append(Pool(key, is_incomplete=True))
                continue
            others = of_pool.others(generation, {one.name for one in entries})
        found.append(_build(key, entries, others, partitionable))
    found.sort(key=lambda pool: (pool.has_binding_conditions, pool.key))
    return found


def _is_relevant(entry: SliceEntry, matches: NodeMatch, partitionable: bool, counters_belong_to_nodes: bool) -> bool:
    spec = entry.slice.spec
    if not partitionable and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    if spec.shared_counters and not counters_belong_to_nodes:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return matches(spec.node_name, spec.all_nodes, spec.node_selector)
    if spec.per_device_node_selection:
        devices = spec.devices or ()
        return any(matches(one.node_name, one.all_nodes, one.node_selector) for one in devices)
    return False


def _add(pools: dict[PoolKey, list[SliceEntry]], entry: SliceEntry) -> None:
    known = pools.get(entry.pool_key)
    generation = entry.slice.spec.pool.generation
    if known is None or generation > known[0].slice.spec.pool.generation:
        pools[entry.pool_key] = [entry]
    elif generation == known[0].slice.spec.pool.generation:
        known.append(entry)


def _build(key: PoolKey, entries: list[SliceEntry], others: list[SliceEntry], partitionable: bool) -> Pool:
    entries.sort(key=lambda one: one.name)
    with_devices = entries if not partitionable else [one for one in entries if not one.slice.spec.shared_counters]
    devices = tuple(device for one in with_devices for device in one.devices)
    if len({device.id for device in devices}) < len(devices):
        return Pool(key, is_invalid=True)
    if not partitionable:
        return Pool(key, devices=devices)
    counter_sets = _counter_sets([*entries, *others])
    if counter_sets is None or not _counters_exist(counter_sets, (device for one in entries for device in one.devices)):
        return Pool(key, is_invalid=True)
    other_devices = tuple(device for one in others for device in one.devices)
    if not _counters_exist(counter_sets, other_devices):
        return Pool(key, is_invalid=True)
    return Pool(key, devices=devices, other_devices=other_devices, counter_sets=counter_sets)


def _counter_sets(entries: Sequence[SliceEntry]) -> CounterSets | None:
    """None if two have the same name."""
    found: dict[str, Mapping[str, int]] = {}
    for entry in entries:
        for one in entry.slice.spec.shared_counters or ():
            if one.name in found:
                return None
            found[one.name] = {name: nano(counter.value) for name, counter in (one.counters or {}).items()}
    return found


def _counters_exist(counter_sets: CounterSets, devices: Iterable[PoolDevice]) -> bool:
    for one in devices:
        for consumption in one.device.consumes_counters or ():
            counters = counter_sets.get(consumption.counter_set)
            if counters is None or not counters.keys() >= (consumption.counters or {}).keys():
                return False
    return True
