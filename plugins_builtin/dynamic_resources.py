"""DynamicResources for pods without resource claims; pods with claims stay pending, with a reason that says so."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from plugins_builtin._resources import device_class_maps, mentions_scalars, resource_options
from trio_sched.plugin_api import (
    SKIP,
    Action,
    CycleState,
    Diagnosis,
    DynamicResourcesArgs,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    NodeColumns,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    Verdicts,
    failure,
    hookimpl,
    nano_requests,
    on,
    unresolvable,
    unschedulable,
)

NAME = "DynamicResources"
NO_CLAIMS = "no new claims to deallocate"
CLAIMS = "resource claims are not supported by this version of trio-sched"
_REJECTED = (NAME, "rejected")


class DynamicResources:
    """Passes pods without claims and rejects all others."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[DynamicResourcesArgs]] = DynamicResourcesArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset()

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        self._options = resource_options(handle)
        self._extended_by_devices = handle.feature_enabled("DRAExtendedResource")

    def _unsupported(self, pod: Pod) -> str | None:
        """Why the pod is not supported; None if it is."""
        if pod.spec.resource_claims:
            return CLAIMS
        if self._extended_by_devices and mentions_scalars(pod):
            for name, amount in nano_requests(pod, self._options).items():
                if amount and "/" in name and device_class_maps(name, self._handle):
                    return f"{CLAIMS}, and a DeviceClass stands behind {name}"
        return None

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gates no pod: pods with claims get their reason in pre_filter."""

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status:
        """Skip without claims; reject the pod otherwise."""
        reason = self._unsupported(pod)
        if reason is None:
            return SKIP
        state.write(_REJECTED, True)
        return unresolvable(reason)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Never called: pre_filter skips this or ends the cycle."""
        return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unresolvable(CLAIMS))

    @hookimpl
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        """There are no claims to deallocate."""
        if NAME not in state.skip_filter and not state.get(_REJECTED):  # another pre_filter ended the cycle first
            return PostFilterResult(failure("not found"))
        return PostFilterResult(unschedulable(NO_CLAIMS))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0 for every node."""
        return np.zeros(len(nodes), dtype=np.int64)

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Nothing to reserve."""

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Nothing was reserved."""

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> Status:
        """Nothing to write."""
        return SKIP

    @hookimpl
    def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Never called: pre_bind_pre_flight skips it."""

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """The same for all pods without claims; the others are not cached."""
        return None if self._unsupported(pod) is not None else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """The events of kube-scheduler's plugin; none of them makes a pod with claims schedulable in this version."""
        node_actions = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return [
            on(Resource.NODE, node_actions),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE, _skip),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _skip),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]


def _skip(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.SKIP
