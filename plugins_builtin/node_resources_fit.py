"""NodeResourcesFit: a pod goes where its requests fit, and preferably where the strategy says."""

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from plugins_builtin._resource_scores import ResourceScorer
from plugins_builtin._resources import (
    DEVICE_CLASS_PREFIX,
    FEW,
    asks_for_scalars,
    device_class_maps,
    request_signature,
    resource_options,
)
from trio_sched.plugin_api import (
    Action,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    Node,
    NodeColumns,
    NodeResourcesFitArgs,
    Pod,
    Resource,
    ResourceAmounts,
    Status,
    Verdicts,
    hookimpl,
    is_extended,
    nano_requests,
    node_amounts,
    on,
    to_amounts,
    unresolvable,
    unschedulable,
)

NAME = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"


@frozen
class _Wanted:
    """One resource that the pod needs some of."""

    name: str
    amount: int
    delegated: bool
    """Nodes that have none of it are left to DynamicResources."""


class NodeResourcesFit:
    """Filters by free resources, ranks by the scoring strategy."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[NodeResourcesFitArgs]] = NodeResourcesFitArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.USAGE})

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        self._handle = handle
        self._options = resource_options(handle)
        self._extended_by_devices = handle.feature_enabled("DRAExtendedResource")
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        self._scorer = ResourceScorer(args.scoring_strategy)

    # --- filter -----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        """Add up what the pod needs."""
        state.write((NAME, "wanted"), self._wanted(self._requests(pod)))

    def _requests(self, pod: Pod) -> ResourceAmounts:
        return to_amounts(nano_requests(pod, self._options))

    def _wanted(self, amounts: ResourceAmounts) -> tuple[_Wanted, ...]:
        common = (
            ("cpu", amounts.cpu_milli),
            ("memory", amounts.memory_bytes),
            ("ephemeral-storage", amounts.ephemeral_storage_bytes),
        )
        wanted = [_Wanted(name, amount, False) for name, amount in common if amount > 0]
        for name, amount in amounts.scalars:
            if amount and not self._is_ignored(name):
                wanted.append(_Wanted(name, amount, self._is_delegated(name)))
        return tuple(wanted)

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups)

    def _is_delegated(self, name: str) -> bool:
        return self._extended_by_devices and device_class_maps(name, self._handle)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes without room fail, with every resource that is short; unresolvable if the empty node is too small."""
        wanted: tuple[_Wanted, ...] = state.read((NAME, "wanted"))
        if len(nodes) <= FEW:
            return Verdicts(_codes_few(wanted, nodes), lambda code: _explain(code, wanted))
        codes = (nodes.pod_count >= nodes.allowed_pods).astype(np.int64)
        if wanted:
            allocatable, requested = nodes.allocatable, nodes.requested
            for i, want in enumerate(wanted):
                row = nodes.resource_row(want.name)
                if row is None:
                    if not want.delegated:
                        codes |= _short(i) | _hopeless(i)
                    continue
                has = allocatable[row]
                short = want.amount > has - requested[row]
                if want.delegated:
                    short &= has > 0
                if short.any():
                    codes[short] |= _short(i)
                    codes[short & (want.amount > has)] |= _hopeless(i)
        return Verdicts(codes, lambda code: _explain(code, wanted))

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        """Add up what the pod counts as."""
        state.write((NAME, "score"), self._scorer.pod_amounts(pod))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0..100 by the scoring strategy."""
        return self._scorer.score(state.read((NAME, "score")), nodes)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """The requests; none where a DeviceClass has a say."""
        for name, _amount in self._requests(pod).scalars if asks_for_scalars(pod) else ():
            if self._is_delegated(name):
                return None
        return request_signature(pod)

    # --- what may free a pod ----------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods go or shrink, nodes come or grow, a DeviceClass comes to stand for a resource."""
        events = [
            on(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._pod_freed_something),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_has_room),
        ]
        if self._extended_by_devices:
            events.append(on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self._device_class_stands_in))
        return events

    def _pod_freed_something(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        if new is None:
            return Hint.QUEUE if old.node_name or old.nominated_node_name else Hint.SKIP
        if new.uid == pod.uid:
            return Hint.QUEUE
        if not old.node_name:
            return Hint.SKIP
        wanted = self._requests(pod)
        before = to_amounts(nano_requests(old, self._options, use_status=True))
        after = to_amounts(nano_requests(new, self._options, use_status=True))
        names = ("cpu", "memory", "ephemeral-storage", *(name for name, _ in wanted.scalars))
        shrank = any(wanted.amount(name) and before.amount(name) > after.amount(name) for name in names)
        return Hint.QUEUE if shrank else Hint.SKIP

    def _node_has_room(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        requests = self._requests(pod)
        has, allowed_pods = node_amounts(new)
        if not self._fits_when_empty(requests, has, allowed_pods):
            return Hint.SKIP
        if old is None:
            return Hint.QUEUE
        had, allowed_before = node_amounts(old)
        if allowed_pods > allowed_before:
            return Hint.QUEUE
        names = ("cpu", "memory", "ephemeral-storage", *(name for name, _ in requests.scalars))
        for name in names:
            if requests.amount(name) and has.amount(name) > had.amount(name):
                return Hint.QUEUE
        if any(amount and self._is_delegated(name) for name, amount in requests.scalars):
            return Hint.QUEUE
        return Hint.SKIP

    def _fits_when_empty(self, requests: ResourceAmounts, has: ResourceAmounts, allowed_pods: int) -> bool:
        # What the arguments ignore is not ignored here: kube-scheduler asks without them.
        if allowed_pods < 1:
            return False
        for name in ("cpu", "memory", "ephemeral-storage"):
            if requests.amount(name) > has.amount(name):
                return False
        return all(
            amount <= has.amount(name) or (has.amount(name) <= 0 and self._is_delegated(name))
            for name, amount in requests.scalars
            if amount
        )

    def _device_class_stands_in(self, pod: Pod, old: Any, new: Any) -> Hint:
        if old is not None and old.extended_resource_name == new.extended_resource_name:
            return Hint.SKIP
        names = {name for name, amount in self._requests(pod).scalars if amount}
        if old is None and DEVICE_CLASS_PREFIX + new.name in names:
            return Hint.QUEUE
        return Hint.QUEUE if new.extended_resource_name in names else Hint.SKIP


def _codes_few(wanted: tuple[_Wanted, ...], nodes: NodeColumns) -> Int64Array:
    """The codes of a few nodes, in plain integers."""
    codes = [
        int(count >= allowed)
        for count, allowed in zip(nodes.pod_count.tolist(), nodes.allowed_pods.tolist(), strict=True)
    ]
    allocatable, requested = nodes.allocatable, nodes.requested
    for i, want in enumerate(wanted):
        row = nodes.resource_row(want.name)
        if row is None:
            if not want.delegated:
                codes = [code | _short(i) | _hopeless(i) for code in codes]
            continue
        for position, (has, used) in enumerate(zip(allocatable[row].tolist(), requested[row].tolist(), strict=True)):
            if want.amount > has - used and not (want.delegated and has <= 0):
                codes[position] |= _short(i) | (_hopeless(i) if want.amount > has else 0)
    return np.array(codes, dtype=np.int64)


def _short(i: int) -> int:
    return 2 << (2 * i)


def _hopeless(i: int) -> int:
    return 4 << (2 * i)


def _explain(code: int, wanted: tuple[_Wanted, ...]) -> Status:
    reasons = [TOO_MANY_PODS] if code & 1 else []
    hopeless = False
    for i, want in enumerate(wanted):
        if code & _short(i):
            reasons.append(f"Insufficient {want.name}")
            hopeless = hopeless or bool(code & _hopeless(i))
    return unresolvable(*reasons) if hopeless else unschedulable(*reasons)
