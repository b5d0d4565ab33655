"""Writes what was decided about the claims of a pod: allocations, reservations, claims for extended resources.

Everything is a merge patch with the version of the claim as its precondition: a claim that somebody else has changed in
between is read again, and checked again. Source: PreBind, Unreserve and PostFilter of DynamicResources in
kube-scheduler 1.36, their texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field

from plugins_builtin.dynamic_resources.binding_conditions import (
    BindingFailed,
    has_binding_conditions,
    has_timed_out,
    is_ready,
)
from plugins_builtin.dynamic_resources.group_claims import claims_of_group
from plugins_builtin.dynamic_resources.pod_claims import IN_MEMORY, PodClaims, is_reserved_for, path_of
from trio_sched.plugin_api import (
    AllocationResult,
    ClaimCache,
    Handle,
    NodeAllocatableResourceClaimStatus,
    ObjectGone,
    OutcomeUnknown,
    Pod,
    PodGroup,
    ResourceClaim,
    WriteConflict,
    format_seconds,
    quote,
    replace_fields,
    to_builtins,
)

FINALIZER = "resource.kubernetes.io/delete-protection"
KIND = "ResourceClaim"
TRIES = 5
RETRY_SECONDS = 0.01
EXTENDED_CLAIM_SECONDS = 120.0
"""How long to wait until the watch shows a claim that was created."""
READY_POLL_SECONDS = 5.0
SETTLE_SECONDS = 5.0
"""A claim whose write got no response is read again after this time."""


class WriteFailed(Exception):
    """A claim could not be written; the text is kube-scheduler's."""


class NotReadyInTime(WriteFailed):
    """Devices were not ready in time."""


@define(eq=False)
class ClaimWriter:
    """Writes claims for one profile."""

    _handle: Handle
    _binding_timeout_seconds: float
    _binding_conditions: bool
    _for_groups: bool = False
    """Gate DRAWorkloadResourceClaims."""
    _releasing: dict[str, int] = field(factory=dict)
    """UIDs of pods whose reservations are being taken back in the background; these wait before they reserve again."""

    @property
    def _known(self) -> ClaimCache:
        return self._handle.nodes.devices.claims

    # --- pre_bind ---------------------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str, of_pod: PodClaims) -> None:
        """Write allocations and reservations of all claims; wait for their devices to become ready.

        Raises:
            WriteFailed: a claim could not be written, or its devices were not ready in time.
            BindingFailed: a driver reports that a device has failed.
        """
        while pod.uid in self._releasing:
            await self._wait(of_pod.claims[0])
        for index in range(len(of_pod.claims)):
            is_shared = index in of_pod.group_references
            if is_shared:
                of_pod.claims[index] = self._newest(of_pod.claims[index])  # another member may have written it
            is_written = not is_shared or index not in of_pod.in_flight_uid
            if is_written and is_reserved_for(of_pod.claims[index], pod, or_group=self._for_groups):
                continue
            written = of_pod.claims[index] = await self._bind_claim(pod, index, of_pod)
            if index == of_pod.extended_index:
                of_pod.extended = written
            for other in range(index + 1, len(of_pod.claims)):
                if of_pod.claims[other].metadata.uid == written.metadata.uid:  # the pod names a claim twice
                    of_pod.claims[other] = written
        statuses = of_pod.node_statuses.get(node_name)
        if statuses:
            await self._write_node_status(pod, of_pod, statuses)
        if self._binding_conditions and any(map(has_binding_conditions, of_pod.claims)):
            await self._wait_until_ready(pod, node_name, of_pod)

    async def _bind_claim(self, pod: Pod, index: int, of_pod: PodClaims) -> ResourceClaim:
        claim, allocation = of_pod.claims[index], of_pod.in_flight.get(index)
        is_extended = index == of_pod.extended_index
        if is_extended and (allocation is None or not _has_requests(of_pod)) and claim.metadata.name == IN_MEMORY:
            self._end_in_flight(index, of_pod, is_written=False)
            return claim  # a device plugin provides the resources
        is_stored = is_written = False
        is_unknown = True  # if this is cancelled, what was sent may have an effect all the same
        try:
            if claim.metadata.name == IN_MEMORY:
                claim = of_pod.claims[index] = of_pod.extended = await self._create(pod, of_pod, claim)
            own = {"resource": "pods", "name": pod.name, "uid": pod.uid}
            claim = await self._write(pod, claim, allocation, of_pod.group_references.get(index, own))
            is_stored = True
            if is_extended:
                of_pod.claims[index] = of_pod.extended = claim
            is_written = await self._assume(claim, wait=is_extended)
            is_unknown = not is_written and is_extended
            if is_extended:
                await self._patch_pod(pod, claim, of_pod)
            return claim
        except OutcomeUnknown as problem:
            raise WriteFailed(_write_problem(claim, allocation, problem)) from problem
        except Exception:
            is_unknown = is_unknown and is_stored
            raise
        finally:
            if is_unknown and claim.name != IN_MEMORY and index in of_pod.in_flight_uid:
                self._settle_later(pod, claim, of_pod.in_flight_uid.pop(index))
            else:
                self._end_in_flight(index, of_pod, is_written=is_written)

    def _settle_later(self, pod: Pod, claim: ResourceClaim, uid: str) -> None:
        """Keep the allocation in flight until it is known whether the API server has it.

        The response was lost, or not waited for, or the watch has not shown the claim yet that has it.
        """

        async def settle() -> None:
            read_once = False
            while True:
                try:
                    found = await self._handle.read(KIND, claim.name, namespace=claim.namespace)
                except ObjectGone:
                    break
                except Exception:  # whatever keeps us from reading it, the devices may be taken
                    await self._wait(claim, SETTLE_SECONDS)
                    continue
                is_counted = self._known.assume(found)
                if found.metadata.uid != claim.metadata.uid:
                    break
                if is_counted if found.status.allocation is not None else read_once:
                    break
                read_once = True  # the request may still be on its way
                await self._wait(claim, SETTLE_SECONDS)
            self._known.end_in_flight(uid)
            self._handle.activate([pod, *self._others_rejected(pod)])

        self._handle.run_in_background(settle)

    def _others_rejected(self, pod: Pod) -> Iterator[Pod]:
        """Pods that may get devices that are free now, of which no event tells them."""
        for one in self._handle.pending_pods():
            if self._handle.plugin_name in one.rejected_by and one.pod.uid != pod.uid:
                yield one.pod

    def _end_in_flight(self, index: int, of_pod: PodClaims, *, is_written: bool) -> None:
        uid = of_pod.in_flight_uid.pop(index, None)
        if uid is not None:
            self._known.end_in_flight(uid, is_written=is_written)

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        """The newest version of *claim* that is known."""
        known = self._known.get(claim.metadata.namespace, claim.metadata.name)
        return known if known is not None and known.metadata.uid == claim.metadata.uid else claim

    async def _write(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None, reference: Mapping[str, str]
    ) -> ResourceClaim:
        """Write the reservation *reference*, and *allocation* if there is one; again if somebody else was faster.

        Raises:
            WriteFailed: it was not written.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._write_once(pod, claim, allocation, reference)
            except WriteConflict as conflict:
                if not tries_left:
                    raise WriteFailed(_write_problem(claim, allocation, conflict)) from conflict
            await self._wait(claim)
            claim = await self._read(claim)
        raise AssertionError  # the last try returns or raises

    async def _write_once(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None, reference: Mapping[str, str]
    ) -> ResourceClaim:
        path = path_of(claim)
        if claim.metadata.deletion_timestamp is not None:
            raise WriteFailed(f"claim {path} got deleted in the meantime")
        status: dict[str, Any] = {}
        if allocation is not None and claim.status.allocation is not None:
            if not _is_same(claim.status.allocation, allocation):
                raise WriteFailed(f"claim {path} got allocated elsewhere in the meantime")
            allocation = None  # by an earlier try, whose response was lost, or by another pod of the group
        if claim.status.allocation is not None and is_reserved_for(claim, pod, or_group=self._for_groups):
            return claim
        if allocation is not None:
            finalizers = claim.metadata.finalizers or ()
            if FINALIZER not in finalizers:
                try:
                    claim = await self._patch(claim, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
                except (WriteConflict, OutcomeUnknown):
                    raise
                except Exception as problem:  # the handle's errors have no common type
                    raise WriteFailed(f"add finalizer to claim {path}: {problem}") from problem
        written = claim.status.allocation if allocation is None else allocation
        if self._binding_conditions:
            if written is None:
                raise WriteFailed(f"claim {path} got deallocated elsewhere in the meantime")
            if written.allocation_timestamp is None:
                now = format_seconds(self._handle.wall_seconds())
                written = replace_fields(written, allocation_timestamp=now)
                status["allocation"] = to_builtins(written)
        if allocation is not None and written is not None:
            status["allocation"] = to_builtins(written)
        status["reservedFor"] = [*map(to_builtins, claim.status.reserved_for or ()), reference]
        try:
            return await self._patch(claim, {"status": status}, subresource="status")
        except (WriteConflict, OutcomeUnknown):
            raise
        except Exception as problem:
            raise WriteFailed(_write_problem(claim, allocation, problem)) from problem

    async def _create(self, pod: Pod, of_pod: PodClaims, in_memory: ResourceClaim) -> ResourceClaim:
        assert of_pod.node_result is not None
        extended = of_pod.node_result.extended_claim
        assert extended is not None
        metadata = to_builtins(in_memory.metadata)
        for name in ("name", "uid"):
            del metadata[name]
        metadata["generateName"] = f"{pod.name}-extended-resources-"
        body = {"metadata": metadata, "spec": to_builtins(extended.spec)}
        namespace = in_memory.metadata.namespace
        try:
            created: ResourceClaim = await self._handle.create(KIND, body, namespace=namespace)
        except Exception as problem:
            self._handle.count("resourceclaim_creates_total", "failure")
            path = path_of(in_memory)
            raise WriteFailed(f"create claim for extended resources {path}: {problem}") from problem
        self._handle.count("resourceclaim_creates_total", "success")
        return created

    async def _assume(self, written: ResourceClaim, *, wait: bool) -> bool:
        """Have *written* known at once; for a claim that was created, when the watch shows it."""
        deadline = self._handle.now() + EXTENDED_CLAIM_SECONDS
        while not self._known.assume(written):
            remaining_seconds = deadline - self._handle.now()
            if not wait or remaining_seconds <= 0:
                return False
            await self._wait(written, min(1.0, remaining_seconds))
        return True

    async def _patch_pod(self, pod: Pod, claim: ResourceClaim, of_pod: PodClaims) -> None:
        assert of_pod.node_result is not None
        mappings = of_pod.node_result.mappings
        status = {"requestMappings": list(mappings), "resourceClaimName": claim.name}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        try:
            await self._handle.patch("Pod", pod.name, patch, namespace=pod.namespace, subresource="status")
        except Exception as problem:
            raise WriteFailed(f"update pod {pod.key} ExtendedResourceClaimStatus: {problem}") from problem

    async def _write_node_status(
        self, pod: Pod, of_pod: PodClaims, statuses: Sequence[NodeAllocatableResourceClaimStatus]
    ) -> None:
        of_pod.has_node_status = True
        try:
            await self._patch_node_status(pod, [to_builtins(one) for one in statuses])
        except Exception as problem:
            raise WriteFailed(f"updating pod {pod.key} NodeAllocatableResourceClaimStatuses: {problem}") from problem

    async def _clear_node_status(self, pod: Pod) -> None:
        with suppress(ObjectGone):
            await self._patch_node_status(pod, None)

    async def _patch_node_status(self, pod: Pod, statuses: object) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": {"nodeAllocatableResourceClaimStatuses": statuses}}
        await self._handle.patch("Pod", pod.name, patch, namespace=pod.namespace, subresource="status")

    async def _wait_until_ready(self, pod: Pod, node_name: str, of_pod: PodClaims) -> None:
        handle, began = self._handle, self._handle.now()
        outcome = "error"
        try:
            await self._poll_until_ready(pod, node_name, of_pod)
            outcome = "success"
        except BindingFailed:
            outcome = "failure"
            raise
        except NotReadyInTime:
            outcome = "timeout"
            raise
        finally:
            seconds = handle.now() - began
            for claim in of_pod.claims:
                allocation = claim.status.allocation
                for result in () if allocation is None else allocation.devices.results or ():
                    labels = result.driver, handle.profile_name, outcome
                    handle.count("dra_bindingconditions_wait_duration_seconds", *labels, seconds=seconds)
                    if result.binding_conditions:
                        handle.count("dra_bindingconditions_allocations_total", *labels)

    async def _poll_until_ready(self, pod: Pod, node_name: str, of_pod: PodClaims) -> None:
        handle = self._handle
        note = f"waiting for binding conditions for device on node {node_name}"
        handle.record_event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
        deadline = handle.now() + self._binding_timeout_seconds
        while True:
            unready = self._first_unready(of_pod)
            if unready is None:
                return
            if has_timed_out(unready, self._binding_timeout_seconds, handle.wall_seconds()):
                raise NotReadyInTime(f"device binding timeout: claim={unready.name}")
            remaining_seconds = deadline - handle.now()
            if remaining_seconds <= 0:
                raise NotReadyInTime("device binding timeout: context deadline exceeded")
            await self._wait(unready, min(READY_POLL_SECONDS, remaining_seconds))

    def _first_unready(self, of_pod: PodClaims) -> ResourceClaim | None:
        """Raises BindingFailed and WriteFailed."""
        for index, one in enumerate(of_pod.claims):
            claim = self._known.get(one.metadata.namespace, one.name)
            if claim is None:
                raise WriteFailed(f"could not find ResourceClaim {quote(path_of(one))}")
            of_pod.claims[index] = claim
            if not is_ready(claim):
                return claim
        return None

    # --- post_filter ------------------------------------------------------------------------------------------------

    async def make_room(self, pod: Pod, of_pod: PodClaims) -> str | None:
        """Deallocate one claim that is not available on some node, or delete a left over one.

        Returns:
            What was done, or None.

        Raises:
            WriteFailed: the API server refused.
        """
        extended = of_pod.extended
        is_left_over = extended is not None and extended.metadata.name != IN_MEMORY
        for index in sorted(of_pod.unavailable):
            if index == of_pod.extended_index:
                continue
            claim = of_pod.claims[index]
            reserved_for = claim.status.reserved_for or ()
            if not reserved_for or (len(reserved_for) == 1 and reserved_for[0].uid == pod.uid):
                status = {"allocation": None, "reservedFor": None, "devices": None}
                try:
                    await self._patch(claim, {"status": status}, subresource="status")
                except Exception as problem:
                    raise WriteFailed(str(problem)) from problem
                return "deallocation of ResourceClaim completed"
        if is_left_over and extended is not None:
            await self._delete(extended)
            return "deletion of ResourceClaim completed"
        return None

    async def leave(self, pod: Pod, group: PodGroup) -> bool:
        """Take back the reservation of one claim for *group*, so that it may be deallocated; whether there was one.

        Raises:
            GroupClaimProblem: a claim of the group is missing.
        """
        for claim in claims_of_group(group, self._known):
            if claim.status.allocation is None or not is_reserved_for(claim, pod, or_group=True):
                continue
            try:
                await self._take_back(claim, group.metadata.uid)
            except WriteFailed:  # there is another attempt
                continue
            return True
        return False

    # --- unreserve --------------------------------------------------------------------------------------------------

    def release(self, pod: Pod, of_pod: PodClaims, *, is_trial: bool) -> None:
        """Give back what is in flight at once, and take back in the background what is written.

        With *is_trial* nothing was written: what is, is from an earlier attempt, with which the next one goes on.
        """
        for index in list(of_pod.in_flight_uid):
            uid = of_pod.in_flight_uid.pop(index)
            claim = of_pod.claims[index]
            if self._known.end_in_flight(uid):
                self._known.restore(claim.metadata.namespace, claim.metadata.name)
        if is_trial:
            return
        reserved = [one for one in of_pod.user_claims if one.status.allocation and is_reserved_for(one, pod)]
        extended = of_pod.extended
        if extended is not None and extended.metadata.name == IN_MEMORY:
            extended = None
        if not reserved and extended is None and not of_pod.has_node_status:
            return
        self._releasing[pod.uid] = self._releasing.get(pod.uid, 0) + 1

        async def take_back() -> None:
            try:
                try:
                    for claim in reserved:
                        await self._take_back(claim, pod.uid)
                    if extended is not None:
                        await self._delete(extended)
                finally:
                    if of_pod.has_node_status:
                        await self._clear_node_status(pod)
            finally:
                self._releasing[pod.uid] -= 1
                if not self._releasing[pod.uid]:
                    del self._releasing[pod.uid]

        self._handle.run_in_background(take_back)

    async def _take_back(self, claim: ResourceClaim, uid: str) -> None:
        """Remove the reservation for the pod, or the pod group, with that UID.

        Raises:
            WriteFailed: it was not removed; the next attempt finds it, and goes on with it.
        """
        claim = self._newest(claim)
        for tries_left in reversed(range(TRIES)):
            reserved_for = claim.status.reserved_for or ()
            left = [to_builtins(one) for one in reserved_for if one.uid != uid]
            if len(left) == len(reserved_for):
                return
            try:
                written = await self._patch(claim, {"status": {"reservedFor": left or None}}, subresource="status")
            except ObjectGone:
                return
            except WriteConflict as conflict:
                if not tries_left:
                    raise WriteFailed(str(conflict)) from conflict
                claim = await self._read(claim)
            except Exception as problem:
                raise WriteFailed(str(problem)) from problem
            else:
                self._known.assume(written)
                return

    async def _delete(self, claim: ResourceClaim) -> None:
        """Remove the finalizer, and delete the claim.

        Raises:
            WriteFailed: the API server refused.
        """
        namespace, name = claim.metadata.namespace, claim.metadata.name
        for tries_left in reversed(range(TRIES)):
            try:
                if FINALIZER in (claim.metadata.finalizers or ()):
                    left = [one for one in claim.metadata.finalizers or () if one != FINALIZER]
                    await self._patch(claim, {"metadata": {"finalizers": left or None}})
                await self._handle.delete(KIND, name, namespace=namespace, uid=claim.metadata.uid)
            except ObjectGone:
                return
            except WriteConflict as conflict:
                if not tries_left:
                    raise WriteFailed(f"update resourceclaim {namespace}/{name}: {conflict}") from conflict
                try:
                    claim = await self._read(claim)
                except ObjectGone:
                    return
            except Exception as problem:
                raise WriteFailed(f"update resourceclaim {namespace}/{name}: {problem}") from problem
            else:
                return

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _patch(self, claim: ResourceClaim, patch: Mapping[str, Any], *, subresource: str = "") -> ResourceClaim:
        metadata = {
            **patch.get("metadata", {}),
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        written: ResourceClaim = await self._handle.patch(
            KIND,
            claim.metadata.name,
            {**patch, "metadata": metadata},
            namespace=claim.metadata.namespace,
            subresource=subresource,
        )
        return written

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is stored.

        Raises:
            WriteFailed: it cannot be read.
        """
        try:
            found: ResourceClaim = await self._handle.read(
                KIND, claim.metadata.name, namespace=claim.metadata.namespace
            )
        except Exception as problem:
            raise WriteFailed(f"get updated claim {path_of(claim)} after conflict: {problem}") from problem
        return found

    async def _wait(self, claim: ResourceClaim, timeout_seconds: float = RETRY_SECONDS) -> None:
        metadata = claim.metadata
        await self._handle.changed(KIND, metadata.name, namespace=metadata.namespace, timeout_seconds=timeout_seconds)


def _has_requests(of_pod: PodClaims) -> bool:
    result = of_pod.node_result
    extended = None if result is None else result.extended_claim
    return extended is not None and bool(extended.spec.devices.requests)


def _is_same(one: AllocationResult, other: AllocationResult) -> bool:
    """Whether two allocations are of the same devices."""
    return one.devices.results == other.devices.results


def _write_problem(claim: ResourceClaim, allocation: AllocationResult | None, problem: Exception) -> str:
    what = "reservation" if allocation is None else "allocation and reservation"
    return f"add {what} to claim {path_of(claim)}: {problem}"
