"""Claims that ask for the same, and what was found out about them: nodes that look the same to them are searched once.

To a shape, a device is what its requests and constraints see of it; a node is the sequence of its devices, with gaps
where one is taken. Nodes with equal sequences have the same answer. Left out are nodes for which more counts: devices
that can be shared or that consume counters, pools that other nodes use too, expressions that fail.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from attrs import define, field

from plugins_builtin.dynamic_resources.device_allocator import AllocatorFeatures, is_tainted
from plugins_builtin.dynamic_resources.device_capacity import ImpossibleCapacity, has_room
from plugins_builtin.dynamic_resources.device_constraints import attribute_of
from plugins_builtin.dynamic_resources.device_requests import Wanted, WantedClaim
from plugins_builtin.dynamic_resources.search_effort import SelectorFailed
from trio_sched.plugin_api import (
    AllocatedDevices,
    DeviceClass,
    DeviceModel,
    NodeDevices,
    PoolDevice,
    ResourceClaim,
    encoded,
)

if TYPE_CHECKING:
    from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors

MAX_SHAPES: Final = 32
MAX_KEPT: Final = 200_000
"""Devices in the sequences for which one shape keeps answers."""
MAX_LISTS: Final = 5_000
"""Different lists of devices of nodes, of one shape."""
_TAKEN: Final = -1
_UNKNOWN: Final = (-1,)
Answer = tuple[bool, int]
"""Whether there is a solution, and its score."""
TIMED_OUT: Final[Answer] = (False, -1)
"""The search was given up, and would be again."""


def shape_key(claims: Sequence[ResourceClaim]) -> tuple[bytes, ...]:
    """Equal for claims that ask for the same."""
    return tuple(encoded(claim.spec) for claim in claims)


@define(eq=False)
class Shape:
    """What some claims ask for together; made by :meth:`of`."""

    selectors: DeviceSelectors
    features: AllocatorFeatures
    _alternatives: list[tuple[Wanted, tuple[str, ...]]] | None
    """With the expressions of class and request; None if these cannot be judged."""
    _attributes: tuple[str, ...]
    """Those that constraints compare."""
    _kinds: dict[Hashable, int] = field(factory=dict)
    _of_node: WeakKeyDictionary[NodeDevices, tuple[int, ...] | None] = field(factory=WeakKeyDictionary)
    _of_models: dict[tuple[DeviceModel, ...], tuple[int, ...] | None] = field(factory=dict)
    """Nodes with equal devices have the same."""
    _answers: dict[tuple[int, ...], Answer] = field(factory=dict)
    _kept: int = 0

    @classmethod
    def of(
        cls,
        wanted: Sequence[WantedClaim],
        selectors: DeviceSelectors,
        class_named: Callable[[str], DeviceClass | None],
        features: AllocatorFeatures,
    ) -> Shape:
        """The shape of the claims *wanted*, which it does not keep: they may be deleted while it is still used."""
        constraints = (one for claim in wanted for one in claim.constraints)
        attributes = {one.match_attribute or one.distinct_attribute or "": None for one in constraints}
        return cls(selectors, features, _judged_alternatives(wanted, class_named), tuple(attributes))

    def answer(self, node: NodeDevices, allocated: AllocatedDevices, search: Callable[[], Answer]) -> Answer | None:
        """Whether there are devices on the node.

        Returns:
            None if the node has to be searched by itself.

        Raises:
            Exception: *search* failed.
        """
        kinds = self._of_node.get(node, _UNKNOWN)
        if kinds is _UNKNOWN:
            kinds = self._of_node[node] = self._kinds_of_node(node)
        if kinds is None:
            return None
        dedicated, shared = allocated.dedicated, allocated.shared
        if shared and any(one.id in shared for one in node.devices):
            return None
        key = tuple([_TAKEN if one.id in dedicated else kind for one, kind in zip(node.devices, kinds, strict=True)])
        answer = self._answers.get(key)
        if answer is None:
            answer = search()
            if self._kept > MAX_KEPT:
                self._answers.clear()
                self._kept = 0
            self._answers[key] = answer
            self._kept += len(key)
        return answer

    def _kinds_of_node(self, node: NodeDevices) -> tuple[int, ...] | None:
        if not node.is_local or self._alternatives is None:
            return None
        models = tuple([one.model for one in node.devices])
        kinds = self._of_models.get(models, _UNKNOWN)
        if kinds is _UNKNOWN:
            if len(self._of_models) >= MAX_LISTS:
                self._of_models.clear()
            kinds = self._of_models[models] = self._kinds_of(node)
        return kinds

    def _kinds_of(self, node: NodeDevices) -> tuple[int, ...] | None:
        kinds, known = [], dict[DeviceModel, int | None]()
        for device in node.devices:
            if device.model not in known:
                known[device.model] = self._kind_of(device)
            kind = known[device.model]
            if kind is None:
                return None
            kinds.append(kind)
        return tuple(kinds)

    def _kind_of(self, device: PoolDevice) -> int | None:
        """Equal for devices that are the same to the requests and constraints; None if more counts."""
        if (
            device.is_shareable
            or device.device.consumes_counters
            or self.selectors.problem_of(device.model) is not None
        ):
            return None
        assert self._alternatives is not None
        seen: list[Hashable] = []
        lacks_gate = bool(device.device.binding_conditions) and not self.features.binding_conditions
        for wanted, expressions in self._alternatives:
            try:
                is_selectable = not lacks_gate and all(self.selectors.matches(one, device) for one in expressions)
            except SelectorFailed:
                return None
            seen.append(is_selectable)
            if is_selectable:
                try:
                    seen.append(self._has_room(wanted, device))
                except ImpossibleCapacity:
                    return None
                seen.append(self.features.taints and is_tainted(wanted, device))
        for name in self._attributes:
            seen.append(attribute_of(device, name))
        return self._kinds.setdefault(tuple(seen), len(self._kinds))

    def _has_room(self, wanted: Wanted, device: PoolDevice) -> bool:
        features = self.features
        return not features.consumable_capacity or has_room(device, wanted.capacity, rules=features.capacity_rules)


def _judged_alternatives(
    claims: Sequence[WantedClaim], class_named: Callable[[str], DeviceClass | None]
) -> list[tuple[Wanted, tuple[str, ...]]] | None:
    found = []
    for claim in claims:
        for wanted in claim.alternatives():
            device_class = class_named(wanted.class_name)
            if device_class is None:
                return None
            of_class = (None if one.cel is None else one.cel.expression for one in device_class.spec.selectors or ())
            expressions = (*of_class, *wanted.selectors)
            if None in expressions:
                return None
            found.append((wanted, tuple(one or "" for one in expressions)))
    return found


@define(eq=False)
class Shapes:
    """The shapes that were used last."""

    selectors: DeviceSelectors
    class_named: Callable[[str], DeviceClass | None]
    features: AllocatorFeatures
    _version: int = -1
    _shapes: OrderedDict[tuple[bytes, ...], Shape] = field(factory=OrderedDict)

    def of(self, wanted: Sequence[WantedClaim], version: int) -> Shape:
        """The shape of these claims; *version* is that of the device classes."""
        if version != self._version:
            self._shapes.clear()
            self._version = version
        key = shape_key([one.claim for one in wanted])
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = Shape.of(wanted, self.selectors, self.class_named, self.features)
            if len(self._shapes) > MAX_SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
        return found
