"""Devices that have to be made ready before a pod is bound: what their driver reports of that.

Source: binding conditions of DynamicResources in kube-scheduler 1.36.
"""

from __future__ import annotations

from trio_sched.plugin_api import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim, parse_time, quote


class BindingFailed(Exception):
    """A driver reports that a device will not be ready."""


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Whether any device of the claim has to be made ready."""
    allocation = claim.status.allocation
    return allocation is not None and any(one.binding_conditions for one in allocation.devices.results or ())


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of the claim are ready.

    Raises:
        BindingFailed: one of them failed.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results or ():
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        conditions = {one.type: one for one in reversed(status.conditions or ())}
        for name in result.binding_failure_conditions or ():
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                raise BindingFailed(
                    f"device binding failed: claim={claim.name}, reason={failed.reason}, "
                    f"message={quote(failed.message)}"
                )
        for name in result.binding_conditions:
            condition = conditions.get(name)
            if condition is None or condition.status != "True":
                return False
    return True


def has_timed_out(claim: ResourceClaim, timeout_seconds: float, wall_seconds: float) -> bool:
    """Whether devices of the claim had *timeout_seconds* since their allocation to get ready."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not has_binding_conditions(claim):
        return False
    allocated = parse_time(allocation.allocation_timestamp)
    return allocated is not None and allocated + timeout_seconds < wall_seconds


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for one in claim.status.devices or ():
        if (one.driver, one.pool, one.device) == (result.driver, result.pool, result.device):
            return one
    return None
