"""DynamicResources, as far as it concerns pods that ask for no devices; pods that do are kept pending, and told so."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np

from plugins_builtin._resources import asks_for_scalars, device_class_maps, resource_options
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
_SEEN = (NAME, "seen")


class DynamicResources:
    """Has nothing against pods without claims, and keeps all others waiting."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[DynamicResourcesArgs]] = DynamicResourcesArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset()

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        self._handle = handle
        self._options = resource_options(handle)
        self._extended_by_devices = handle.feature_enabled("DRAExtendedResource")

    def _wish(self, pod: Pod) -> str | None:
        """What the pod wants that cannot be given, in words."""
        if pod.spec.resource_claims:
            return CLAIMS
        if self._extended_by_devices and asks_for_scalars(pod):
            for name, amount in nano_requests(pod, self._options).items():
                if amount and "/" in name and device_class_maps(name, self._handle):
                    return f"{CLAIMS}, and a DeviceClass stands behind {name}"
        return None

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Every pod may be tried, if only to hear why it has to wait."""

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status:
        """Nothing to do without claims."""
        state.write(_SEEN, True)
        wish = self._wish(pod)
        return SKIP if wish is None else unresolvable(wish)

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Never asked: pods with claims do not get this far."""
        return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unresolvable(CLAIMS))

    @hookimpl
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        """There is no claim whose deallocation could help."""
        if state.get(_SEEN) is None:  # another pre_filter ended the cycle first
            return PostFilterResult(failure("not found"))
        return PostFilterResult(unschedulable(NO_CLAIMS))

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """No node is better than another."""
        return np.zeros(len(nodes), dtype=np.int64)

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Nothing to set aside."""

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Nothing to give back."""

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> Status:
        """Nothing to write."""
        return SKIP

    @hookimpl
    def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Never asked: see pre_bind_pre_flight."""

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Pods without claims are all the same; the others are asked for each time."""
        return None if self._wish(pod) is not None else ()

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """What may change about devices; nothing of it helps a pod that this version cannot serve."""
        node_actions = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return [
            on(Resource.NODE, node_actions),
            on(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE, _never),
            on(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _never),
            on(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
            on(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
        ]


def _never(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.SKIP
