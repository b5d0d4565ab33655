"""NodeResourcesFit: filters nodes by free resources, scores them by the scoring strategy."""

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from plugins_builtin.resources.resource_clauses import resource_clauses, too_many_pods
from plugins_builtin.resources.resource_scores import ResourceScorer
from plugins_builtin.resources.resources import (
    DEVICE_CLASS_PREFIX,
    FEW,
    device_class_maps,
    mentions_scalars,
    request_signature,
    resource_options,
)
from trio_sched.plugin_api import (
    Action,
    BoolArray,
    Clause,
    CycleState,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    Node,
    NodeColumns,
    NodeResourcesFitArgs,
    PlacementAssignments,
    Pod,
    PodGroupInfo,
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
from trio_sched.plugin_api.features import Features

NAME = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
_MAX_BITS = 30
"""For more requests than these a code of 64 bits has no place."""


@frozen
class _Request:
    """The amount of one resource that the pod requests."""

    name: str
    amount: int
    delegated: bool
    """Nodes without the resource are left to DynamicResources."""


class NodeResourcesFit:
    """Rejects nodes without free resources, prefers nodes by the scoring strategy."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[NodeResourcesFitArgs]] = NodeResourcesFitArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.AMOUNTS})

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        self._handle = handle
        self._options = resource_options(handle)
        self._extended_by_devices = Features.of(handle.feature_enabled).dra_extended_resource
        # The score reads them too, and a plugin that only scores is not asked for its events.
        self.watches = ("DeviceClass",) if self._extended_by_devices else ()
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        self._scorer = ResourceScorer(args.scoring_strategy)

    # --- filter -----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        """Add up what the pod requests."""
        state.write((NAME, "requests"), self._to_filter(self._requests(pod)))

    def _requests(self, pod: Pod) -> ResourceAmounts:
        return to_amounts(nano_requests(pod, self._options))

    def _to_filter(self, amounts: ResourceAmounts) -> tuple[_Request, ...]:
        common = (
            ("cpu", amounts.cpu_milli),
            ("memory", amounts.memory_bytes),
            ("ephemeral-storage", amounts.ephemeral_storage_bytes),
        )
        requests = [_Request(name, amount, False) for name, amount in common if amount > 0]
        for name, amount in amounts.scalars:
            if amount and not self._is_ignored(name):
                requests.append(_Request(name, amount, self._is_delegated(name)))
        return tuple(requests)

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups)

    def _is_delegated(self, name: str) -> bool:
        return self._extended_by_devices and device_class_maps(name, self._handle)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes fail with every insufficient resource; unresolvable if a request exceeds what is allocatable."""
        requests: tuple[_Request, ...] = state.read((NAME, "requests"))
        if len(requests) > _MAX_BITS:
            return _filter_many(requests, nodes)
        if len(nodes) <= FEW:
            return Verdicts(_codes_few(requests, nodes), lambda code: _explain(code, requests))
        codes = (nodes.pod_count >= nodes.allowed_pods).astype(np.int64)
        if requests:
            allocatable, requested = nodes.allocatable, nodes.requested
            for i, request in enumerate(requests):
                row = nodes.resource_row(request.name)
                if row is None:
                    if not request.delegated:
                        codes |= _insufficient(i) | _unresolvable(i)
                    continue
                has = allocatable[row]
                insufficient = _is_insufficient(request, has, requested[row])
                if insufficient.any():
                    codes[insufficient] |= _insufficient(i)
                    codes[insufficient & (request.amount > has)] |= _unresolvable(i)
        return Verdicts(codes, lambda code: _explain(code, requests))

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each request that is more than what is free, and the number of pods."""
        yield too_many_pods(nodes)
        for request in self._to_filter(self._requests(pod)):
            has, used = nodes.allocatable_of(request.name), nodes.requested_of(request.name)
            fails = _is_insufficient(request, has, used)
            yield from resource_clauses(pod, nodes, request.name, request.amount, fails, self._options)

    # --- score ------------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        """Add up what the pod requests, with the defaults for scoring."""
        state.write((NAME, "score"), self._scorer.pod_amounts(pod))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0..100 by the scoring strategy."""
        return self._scorer.score(state.read((NAME, "score")), nodes)

    @hookimpl
    def placement_score(self, group: PodGroupInfo, placement: PlacementAssignments, state: CycleState) -> int:
        """0..100: the share of the placement that is requested with the group in it."""
        return self._scorer.most_allocated([pod for pod, _node_name in placement.assignments], placement.nodes)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """The requests; None if a DeviceClass maps to one of the resources."""
        for name, _amount in self._requests(pod).scalars if mentions_scalars(pod) else ():
            if self._is_delegated(name):
                return None
        return request_signature(pod)

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods are deleted or scaled down, nodes are added or grow, a DeviceClass maps to a requested resource."""
        events = [
            on(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._pod_freed_something, node_local=True),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._node_has_room),
        ]
        if self._extended_by_devices:
            events.append(on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, self._device_class_maps_request))
        return events

    def _pod_freed_something(self, pod: Pod, old: Pod, new: Pod | None) -> Hint:
        if new is None:
            return Hint.QUEUE if old.node_name or old.nominated_node_name else Hint.SKIP
        if new.uid == pod.uid:
            return Hint.QUEUE
        if not old.node_name:
            return Hint.SKIP
        requests = self._requests(pod)
        before = to_amounts(nano_requests(old, self._options, use_status=True))
        after = to_amounts(nano_requests(new, self._options, use_status=True))
        names = ("cpu", "memory", "ephemeral-storage", *(name for name, _ in requests.scalars))
        shrank = any(requests.amount(name) and before.amount(name) > after.amount(name) for name in names)
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
        # Ignored resources count here: kube-scheduler does not pass the arguments either.
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

    def _device_class_maps_request(self, pod: Pod, old: Any, new: Any) -> Hint:
        if old is not None and old.extended_resource_name == new.extended_resource_name:
            return Hint.SKIP
        names = {name for name, amount in self._requests(pod).scalars if amount}
        if old is None and DEVICE_CLASS_PREFIX + new.name in names:
            return Hint.QUEUE
        return Hint.QUEUE if new.extended_resource_name in names else Hint.SKIP


def _codes_few(requests: tuple[_Request, ...], nodes: NodeColumns) -> Int64Array:
    """The codes of a few nodes, computed with plain integers."""
    codes = [
        int(count >= allowed)
        for count, allowed in zip(nodes.pod_count.tolist(), nodes.allowed_pods.tolist(), strict=True)
    ]
    allocatable, requested = nodes.allocatable, nodes.requested
    for i, request in enumerate(requests):
        row = nodes.resource_row(request.name)
        if row is None:
            if not request.delegated:
                codes = [code | _insufficient(i) | _unresolvable(i) for code in codes]
            continue
        for position, (has, used) in enumerate(zip(allocatable[row].tolist(), requested[row].tolist(), strict=True)):
            if request.amount > has - used and not (request.delegated and has <= 0):
                codes[position] |= _insufficient(i) | (_unresolvable(i) if request.amount > has else 0)
    return np.array(codes, dtype=np.int64)


def _insufficient(i: int) -> int:
    """The bit of a code that says that request number *i* exceeds what is free."""
    return 2 << (2 * i)


def _unresolvable(i: int) -> int:
    """The bit of a code that says that request number *i* exceeds what is allocatable."""
    return 4 << (2 * i)


def _is_insufficient(request: _Request, has: Int64Array, used: Int64Array) -> BoolArray:
    """Shape (nodes,): where *request* exceeds what is free."""
    insufficient = request.amount > has - used
    return insufficient & (has > 0) if request.delegated else insufficient


def _filter_many(requests: tuple[_Request, ...], nodes: NodeColumns) -> Verdicts:
    """Any number of requests: a code stands for a combination of them, and nodes with the same one share it."""
    offered: list[int] = []
    missing = 0  # the bits of requests that no node can meet
    rows = [np.where(nodes.pod_count >= nodes.allowed_pods, 1, 0)]
    allocatable, requested = nodes.allocatable, nodes.requested
    for i, request in enumerate(requests):
        row = nodes.resource_row(request.name)
        if row is None:
            missing |= 0 if request.delegated else _insufficient(i) | _unresolvable(i)
            continue
        has = allocatable[row]
        insufficient = _is_insufficient(request, has, requested[row])
        if insufficient.any():
            offered.append(i)
            rows.append(np.where(insufficient, np.where(request.amount > has, 2, 1), 0))
    combinations, of_node = np.unique(np.array(rows, dtype=np.int8), axis=1, return_inverse=True)
    masks = []
    for combination in combinations.T.tolist():
        mask = missing | combination[0]
        for i, how in zip(offered, combination[1:], strict=True):
            mask |= (_insufficient(i) if how else 0) | (_unresolvable(i) if how == 2 else 0)
        masks.append(mask)
    codes = np.array([number + 1 if mask else 0 for number, mask in enumerate(masks)], dtype=np.int64)
    return Verdicts(codes[of_node.reshape(-1)], lambda code: _explain(masks[code - 1], requests))


def _explain(code: int, requests: tuple[_Request, ...]) -> Status:
    reasons = [TOO_MANY_PODS] if code & 1 else []
    is_unresolvable = False
    for i, request in enumerate(requests):
        if code & _insufficient(i):
            reasons.append(f"Insufficient {request.name}")
            is_unresolvable = is_unresolvable or bool(code & _unresolvable(i))
    return unresolvable(*reasons) if is_unresolvable else unschedulable(*reasons)
