"""DynamicResources: devices for the claims of a pod, from the decision until they are written to the API server."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar
from uuid import UUID

import numpy as np

from plugins_builtin.dynamic_resources.binding_conditions import BindingFailed
from plugins_builtin.dynamic_resources.claim_writes import ClaimWriter, WriteFailed
from plugins_builtin.dynamic_resources.device_allocator import AllocatorFeatures
from plugins_builtin.dynamic_resources.device_capacity import CapacityRules
from plugins_builtin.dynamic_resources.device_filter import DeviceFilter, is_backed_by_name
from plugins_builtin.dynamic_resources.device_results import allocation_of, configurations, merged_configurations
from plugins_builtin.dynamic_resources.device_shapes import shape_key
from plugins_builtin.dynamic_resources.extended_resources import ResourceClasses
from plugins_builtin.dynamic_resources.group_claims import (
    GroupClaimProblem,
    group_name_of,
    reference_to,
    shared_entries,
)
from plugins_builtin.dynamic_resources.node_allocatable import NodeAllocatable
from plugins_builtin.dynamic_resources.node_allocatable_of_1_37 import NodeAllocatableResources
from plugins_builtin.dynamic_resources.pod_claims import (
    IN_MEMORY,
    ClaimNotReady,
    NodeResult,
    PodClaims,
    claims_of,
    entries_of,
    path_of,
)
from plugins_builtin.dynamic_resources.search_effort import MAX_DEVICES_TRIED, AllocationFailed
from plugins_builtin.resources.resources import mentions_scalars, resource_options
from trio_sched.plugin_api import (
    EXTENDED_RESOURCE_CLAIM,
    SKIP,
    Action,
    AllocationResult,
    BadNodeSelector,
    ClaimCache,
    Clause,
    CycleState,
    DeviceSubRequest,
    Diagnosis,
    DynamicResourcesArgs,
    EventRegistration,
    ExactDeviceRequest,
    Handle,
    Hint,
    Input,
    Int64Array,
    NodeColumns,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodGroup,
    PostFilterResult,
    PreFlight,
    Resource,
    ResourceClaim,
    ResourceOptions,
    Status,
    Verdicts,
    check_node_selector,
    default_normalize_score,
    failure,
    hookimpl,
    nano_requests,
    on,
    parse_nano,
    quote,
    replace_fields,
    to_amounts,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.features import Features

NAME = "DynamicResources"
NO_CLAIMS = "no new claims to deallocate"
_CLAIMS = (NAME, "claims")
_KINDS = ("DeviceClass", "ResourceClaim", "ResourceSlice")
_ZERO_SCORES = frozenset({NAME})
_TRIED_PER_SECOND = 100_000
"""How many devices a search tries per second, on slow processors."""
_FOR_REQUESTS = ResourceOptions(pod_level=True, pod_level_resize=False)


class DynamicResources:
    """Allocates devices to the claims of pods, and to extended resources that devices stand behind."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[DynamicResourcesArgs]] = DynamicResourcesArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})
    writes: ClassVar[dict[str, tuple[str, ...]]] = {
        "ResourceClaim": ("create", "delete", "patch"),
        "ResourceClaim/status": ("patch",),
        "ResourceClaim/binding": ("patch",),
        "Pod/status": ("patch",),
    }

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        gates, behaviour = Features.of(handle.feature_enabled), Behaviour.of(handle)
        self._lists_are_evaluated = gates.dra_list_type_attributes or behaviour.list_attributes_are_evaluated
        self._own_pod = behaviour.own_pod
        self._claim_actions = Action.ADD | Action.UPDATE
        if behaviour.deleted_claims_free_devices:
            self._claim_actions |= Action.DELETE
        self._configurations = merged_configurations if behaviour.configuration_is_merged else configurations
        features = AllocatorFeatures(
            admin_access=gates.dra_admin_access,
            prioritized_list=gates.dra_prioritized_list,
            partitionable=gates.dra_partitionable_devices,
            taints=gates.dra_device_taints,
            binding_conditions=gates.dra_device_binding_conditions and gates.dra_resource_claim_device_status,
            consumable_capacity=gates.dra_consumable_capacity,
            list_attributes=gates.dra_list_type_attributes,
            capacity_rules=CapacityRules(gates.dra_fractional_capacity_range, behaviour.capacities_are_checked),
            failed_selectors_name_device=behaviour.failed_selectors_name_device,
            search_undoes_everything=behaviour.device_search_undoes_everything,
            every_device_is_distinct=behaviour.every_device_is_distinct,
            all_devices_need_room=behaviour.all_devices_need_room,
            counters_belong_to_nodes=behaviour.counters_belong_to_nodes,
        )
        self._features = features
        has_rules = features.taints and gates.dra_device_taint_rules
        self._for_groups = gates.dra_workload_resource_claims
        self.watches = (
            *_KINDS,
            *(("DeviceTaintRule",) if has_rules else ()),
            *(("PodGroup",) if self._for_groups else ()),
        )
        self._extended_by_devices = gates.dra_extended_resource
        self._has_groups = gates.generic_workload
        self._classes = ResourceClasses(handle)
        timeout_ns = args.filter_timeout_ns if gates.dra_scheduler_filter_timeout else None
        max_tried = MAX_DEVICES_TRIED
        if timeout_ns:
            max_tried = min(max_tried, max(1, timeout_ns * _TRIED_PER_SECOND // 10**9))
        binding_timeout_ns = 600 * 10**9 if args.binding_timeout_ns is None else args.binding_timeout_ns
        self._max_tried = max_tried
        self._binding_timeout_seconds = binding_timeout_ns / 10**9
        self._writer = ClaimWriter(handle, self._binding_timeout_seconds, features.binding_conditions, self._for_groups)
        self._node_allocatable: NodeAllocatable | None = None
        if gates.dra_node_allocatable_resources:
            options = replace_fields(resource_options(handle), device_claims=True)
            of_version = NodeAllocatableResources if behaviour.devices_have_overhead else NodeAllocatable
            self._node_allocatable = of_version(options, self._for_groups)
        self._tried: set[str] = set()
        """UIDs of the pods that are reserved because their group is being tried."""
        self._filter_made: DeviceFilter | None = None

    @property
    def _filter(self) -> DeviceFilter:
        """Made for the first pod with claims: CEL takes a while to import."""
        if self._filter_made is None:
            from plugins_builtin.dynamic_resources.device_selectors import DeviceSelectors

            self._filter_made = DeviceFilter(
                self._handle,
                self._features,
                DeviceSelectors(self._lists_are_evaluated),
                self._classes,
                self._binding_timeout_seconds,
                self._max_tried,
                self._node_allocatable,
            )
        return self._filter_made

    @property
    def _known_claims(self) -> ClaimCache:
        return self._handle.nodes.devices.claims

    # --- in the queue -----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate pods whose claims are not there yet."""
        if not pod.spec.resource_claims:
            return None
        try:
            claims_of(pod, self._known_claims, of_group=self._for_groups)
        except ClaimNotReady as problem:
            return unresolvable(str(problem))
        return None

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """What the claims ask for; None where what is found for a node depends on more than that and its devices."""
        if self._may_use_extended_resources(pod) and self._extended_amounts(pod):
            return None
        of_group = group_name_of(pod) if self._for_groups else ""
        if not pod.spec.resource_claims:
            return (pod.namespace, of_group) if of_group else ()  # pre_filter looks whether the group exists
        if of_group or self._node_allocatable is not None:  # what the node has left counts too
            return None
        devices = self._handle.nodes.devices
        if devices.has_shared_slices:
            return None
        try:
            claims = claims_of(pod, devices.claims)
        except ClaimNotReady:
            return None
        for claim in claims:
            if claim.status.allocation is not None or devices.claims.in_flight(claim.metadata.uid) is not None:
                return None
        return shape_key(claims)

    # --- finding nodes ----------------------------------------------------------------------------------------------

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Look up the claims of the pod and their device classes."""
        has_claims, may_use_extended = bool(pod.spec.resource_claims), self._may_use_extended_resources(pod)
        of_group = group_name_of(pod) if self._for_groups else ""
        if not has_claims and not may_use_extended and not of_group:
            state.zero_scores |= _ZERO_SCORES
            return SKIP
        known = nodes.devices.claims
        try:
            entries = entries_of(pod, known, of_group=self._for_groups) if has_claims else []
            of_pod = PodClaims([claim for _name, claim in entries], entries)
        except ClaimNotReady as not_ready:
            state.write(_CLAIMS, PodClaims([]))
            return unresolvable(str(not_ready))
        if may_use_extended:
            self._add_extended_claim(pod, of_pod, known)
        state.write(_CLAIMS, PodClaims([]))  # post_filter has nothing to do for a pod that is rejected here
        if of_group:
            problem = self._note_group(pod, [name for name, _claim in entries], of_pod)
            if problem is not None:
                return problem
        if not of_pod.claims:
            state.zero_scores |= _ZERO_SCORES
            return SKIP
        for index, claim in enumerate(of_pod.claims):
            problem = self._check_claim(pod, index, claim, of_pod, known)
            if problem is not None:
                return problem
        state.write(_CLAIMS, of_pod)
        if self._node_allocatable is not None:
            state.node_allocatable_claims = of_pod.node_statuses
        if not any(one.first_available for claim in of_pod.claims for one in claim.spec.devices.requests or ()):
            state.zero_scores |= _ZERO_SCORES
        return None

    def _group_of(self, pod: Pod) -> PodGroup | str:
        """The group of a pod that is in one, or that there is none."""
        name = group_name_of(pod)
        group: PodGroup | None = self._handle.object("PodGroup", name, pod.namespace)
        return f"podgroup.scheduling.k8s.io {quote(name)} not found" if group is None else group

    def _note_group(self, pod: Pod, entries: Sequence[str], of_pod: PodClaims) -> Status | None:
        """Note which claims are reserved for the pod's group; *entries* are the names of those in the spec."""
        group = self._group_of(pod)
        if isinstance(group, str):
            return unresolvable(group)
        try:
            shared = shared_entries(pod, group)
        except GroupClaimProblem as problem:
            return unresolvable(str(problem))
        reference = reference_to(group)
        of_pod.group_references = {index: reference for index, name in enumerate(entries) if name in shared}
        return None

    def _may_use_extended_resources(self, pod: Pod) -> bool:
        return self._extended_by_devices and mentions_scalars(pod)

    def _extended_amounts(self, pod: Pod) -> dict[str, int]:
        """What the pod requests of scalar resources, if devices stand behind one of them."""
        requests = nano_requests(pod, _FOR_REQUESTS)
        mapped = (
            amount and is_backed_by_name(name) and self._classes.class_of(name) is not None
            for name, amount in requests.items()
        )
        return dict(to_amounts(requests).scalars) if any(mapped) else {}

    def _add_extended_claim(self, pod: Pod, of_pod: PodClaims, known: ClaimCache) -> None:
        amounts = self._extended_amounts(pod)
        if not amounts:
            return
        claim = known.extended_of(pod.uid, pod.name)
        if claim is None:
            owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
            metadata = ObjectMeta(
                namespace=pod.namespace,
                name=IN_MEMORY,
                uid=f"{IN_MEMORY}{pod.uid}",
                annotations={EXTENDED_RESOURCE_CLAIM: "true"},
                owner_references=(owner,),
            )
            claim = ResourceClaim(metadata=metadata)
        of_pod.extended, of_pod.extended_amounts = claim, amounts
        of_pod.claims.append(claim)

    def _check_claim(
        self, pod: Pod, index: int, claim: ResourceClaim, of_pod: PodClaims, known: ClaimCache
    ) -> Status | None:
        allocation = claim.status.allocation
        if allocation is not None:
            if allocation.node_selector is not None:
                try:
                    check_node_selector(allocation.node_selector)
                except BadNodeSelector as bad:
                    return failure(str(bad))
                of_pod.selectors[index] = allocation.node_selector
            return None
        in_flight = known.in_flight(claim.metadata.uid)
        if in_flight is not None:
            if not in_flight.group or in_flight.group != pod.group_key:
                return unresolvable(f"resource claim {path_of(claim)} is in the process of being allocated")
            of_pod.shared_allocations[index] = in_flight.allocation
            if in_flight.allocation.node_selector is not None:
                of_pod.selectors[index] = in_flight.allocation.node_selector
            return None
        if claim is of_pod.extended:
            return None
        for request in claim.spec.devices.requests or ():
            where = f"resource claim {path_of(claim)}, request {request.name}"
            if request.exactly is not None:
                problem = self._check_class(request.exactly.device_class_name, request.name)
                problem = problem or _check_capacity(request.exactly, where)
                if problem is not None:
                    return problem
            elif request.first_available:
                if not self._features.prioritized_list:
                    text = "has subrequests, but the DRAPrioritizedList feature is disabled"
                    return unresolvable(f"{where}: {text}")
                for one in request.first_available:
                    problem = self._check_class(one.device_class_name, f"{request.name}/{one.name}")
                    problem = problem or _check_capacity(one, f"{where}/{one.name}")
                    if problem is not None:
                        return problem
            else:
                return unresolvable(f"{where}: unknown request type")
        return None

    def _check_class(self, name: str, request: str) -> Status | None:
        if not name:
            return failure(f"request {request}: unsupported request type")
        if self._handle.object("DeviceClass", name) is None:
            return unresolvable(f"request {request}: device class {name} does not exist")
        return None

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Nodes on which the claims are allocated already, or can be."""
        return self._filter.verdicts(pod, nodes, state.read(_CLAIMS))

    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Each claim that cannot be used or allocated, each device class that does not exist."""
        # Only explaining needs them.
        from plugins_builtin.dynamic_resources import device_clauses, failing_selectors, matching_devices

        known = self._known_claims
        yield from device_clauses.missing_claims(pod, known, self._handle)
        try:
            claims = claims_of(pod, known, of_group=self._for_groups)
        except ClaimNotReady:
            return
        devices = matching_devices.Devices(
            handle=self._handle,
            nodes=nodes,
            matches=self._filter.selectors.matches,
            cache=self._filter.devices,
        )
        unexplained = np.ones(len(nodes), dtype=np.bool_)
        for claim in claims:
            missing = [] if claim.status.allocation else list(device_clauses.missing_classes(self._handle, claim))
            yield from missing
            alone = PodClaims([claim])
            if missing or self._check_claim(pod, 0, claim, alone, known) is not None:
                continue
            verdicts = self._filter.verdicts(pod, nodes, alone)
            fails = ~verdicts.passes
            unexplained &= ~fails
            if verdicts.may_fail:  # what a filter fails for is nothing that nodes lack
                failing = failing_selectors.failing_clause(devices, claim)
                yield from [] if failing is None else [failing]
            elif claim.status.allocation is not None:
                yield device_clauses.allocated_clause(nodes, claim, fails)
            else:
                yield from device_clauses.unallocated_clauses(devices, known, claim, fails)
        for resource, count in self._extended_amounts(pod).items() if self._may_use_extended_resources(pod) else ():
            name = self._classes.class_of(resource)
            if name is not None:
                yield device_clauses.extended_clause(devices, known, pod, resource, count, name, unexplained)

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        """Deallocate a claim that keeps the pod from other nodes, unless other pods use it."""
        of_pod: PodClaims | None = state.get(_CLAIMS)
        if of_pod is None:
            if NAME not in state.skip_filter:  # another pre_filter ended the cycle first
                return PostFilterResult(failure("not found"))
            return PostFilterResult(unschedulable(NO_CLAIMS))
        if not of_pod.claims:
            return PostFilterResult(unschedulable(NO_CLAIMS))
        try:
            done = await self._writer.make_room(pod, of_pod)
        except WriteFailed as problem:
            return PostFilterResult(failure(problem))
        if done is None and self._for_groups and group_name_of(pod):
            try:
                left = await self._leave_claims_of_group(pod)
            except GroupClaimProblem as problem:
                return PostFilterResult(failure(str(problem)))
            if left:
                return PostFilterResult(unresolvable("ResourceClaim unreserved for PodGroup"))
        return PostFilterResult(unschedulable(done or "still not schedulable"))

    async def _leave_claims_of_group(self, pod: Pod) -> bool:
        """Take back a reservation of the pod's group, if none of its pods has a node; whether there was one.

        So another attempt may find other devices than those of an earlier one, which could not be bound.

        Raises:
            GroupClaimProblem: nothing is known about the group, or one of its claims.
        """
        members = self._handle.pod_group_state(pod.namespace, group_name_of(pod))
        if members is None:
            raise GroupClaimProblem(f"pod group state not found for pod group {pod.group_key}")
        if members.scheduled_count > sum(uid in self._tried for uid in members.assumed_uids):
            return False
        group = self._group_of(pod)
        if isinstance(group, str):
            raise GroupClaimProblem(group)
        return await self._writer.leave(pod, group)

    # --- scoring nodes ----------------------------------------------------------------------------------------------

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """The earlier the alternatives of prioritised lists, the more."""
        of_pod: PodClaims | None = state.get(_CLAIMS)
        if of_pod is None or not of_pod.scores or not self._features.prioritized_list:
            return np.zeros(len(nodes), dtype=np.int64)
        scores = of_pod.scores
        return np.array([scores.get(name, 0) for name in nodes.names], dtype=np.int64)

    @hookimpl
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """The highest becomes 100."""
        return default_normalize_score(scores)

    # --- the node is chosen -----------------------------------------------------------------------------------------

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Put the allocations in flight, so that no other pod gets the same devices."""
        if self._for_groups and state.is_trial:
            self._tried.add(pod.uid)
        of_pod: PodClaims | None = state.get(_CLAIMS)
        if of_pod is None:
            return None
        to_allocate = list(of_pod.to_allocate())
        if not to_allocate:
            return None
        try:
            has_filter = self._filter_made is not None  # not where the profile has switched it off
            result = self._filter.result_on(pod, node_name, of_pod) if has_filter else None
            if result is None:
                if all(index == of_pod.extended_index for index, _claim in to_allocate):
                    return None  # a device plugin serves the node
                return failure("claim allocation not found for node")
            of_pod.node_result = result
            group = (pod.group_key or "") if self._has_groups else ""
            self._put_in_flight(of_pod, result, node_name, group)
        except AllocationFailed as problem:
            return failure(str(problem))
        return None

    def _put_in_flight(self, of_pod: PodClaims, result: NodeResult, node_name: str, group: str) -> None:
        """Raises AllocationFailed: an allocation cannot be written down."""
        known, solutions = self._known_claims, iter(result.solutions)
        allocations: dict[str, AllocationResult] = {}  # by UID: of a claim that the pod names twice, the last
        to_allocate = list(of_pod.to_allocate())
        for index, claim in to_allocate:
            allocations[claim.metadata.uid] = of_pod.shared_allocations.get(index) or allocation_of(
                next(solutions),
                node_name,
                self._filter.class_named,
                self._new_share_id,
                binding_conditions=self._features.binding_conditions,
                configurations_of=self._configurations,
            )
        for index, claim in to_allocate:
            uid = claim.metadata.uid
            of_pod.in_flight[index] = allocations[uid]
            if uid not in of_pod.in_flight_uid.values():
                of_pod.in_flight_uid[index] = uid
                known.add_in_flight(uid, allocations[uid], group)

    def _new_share_id(self) -> str:
        return str(UUID(int=self._handle.rng.getrandbits(128), version=4))

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Give the devices back that are not written yet; reservations that are written are taken back."""
        self._tried.discard(pod.uid)
        of_pod: PodClaims | None = state.get(_CLAIMS)
        if of_pod is None or not of_pod.claims:
            return
        self._writer.release(pod, of_pod, is_trial=state.is_trial)

    # --- binding ----------------------------------------------------------------------------------------------------

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status:
        """Skip if the pod has no claims."""
        of_pod: PodClaims | None = state.get(_CLAIMS)
        return SKIP if of_pod is None or not of_pod.claims else PreFlight(allow_parallel=True)

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Write allocations and reservations, and wait for devices that have to be made ready."""
        try:
            await self._writer.bind(pod, node_name, state.read(_CLAIMS))
        except (WriteFailed, BindingFailed) as problem:
            return failure(problem)
        return None

    # --- events -----------------------------------------------------------------------------------------------------

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Claims, classes and slices are added or change, or nodes in a way that matters to node selectors."""
        add_or_update = Action.ADD | Action.UPDATE
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
            on(Resource.RESOURCE_CLAIM, self._claim_actions, self._claim_changed),
            on(self._own_pod, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, self._pod_changed),
            on(Resource.DEVICE_CLASS, add_or_update),
            on(Resource.RESOURCE_SLICE, add_or_update),
        ]

    def _claim_changed(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> Hint:
        try:
            claims = claims_of(pod, self._known_claims, of_group=self._for_groups)
        except ClaimNotReady:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None):
            return Hint.QUEUE  # its devices are free
        if new is None:
            return Hint.SKIP
        if all(claim.metadata.uid != new.metadata.uid for claim in claims):
            return Hint.SKIP
        return Hint.QUEUE if old is None or old.status != new.status else Hint.SKIP

    def _pod_changed(self, pod: Pod, old: Pod | None, new: Pod) -> Hint:
        if pod.uid != new.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._known_claims, of_group=self._for_groups)
        except ClaimNotReady:
            return Hint.SKIP
        return Hint.QUEUE


def _check_capacity(request: ExactDeviceRequest | DeviceSubRequest, where: str) -> Status | None:
    requests = None if request.capacity is None else request.capacity.requests
    for name, amount in (requests or {}).items():
        try:
            parse_nano(amount)
        except ValueError as problem:
            return failure(f"{where}: capacity {name}: {problem}")
    return None
