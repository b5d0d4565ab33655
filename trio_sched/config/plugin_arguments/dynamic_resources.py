"""``pluginConfig`` of DynamicResources."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.config.decode import Duration, Given, GoType
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.problems import forbidden, invalid
from trio_sched.go.durations import format_duration
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.arguments import DynamicResourcesArgs

FIELDS: Final[Mapping[str, GoType]] = {
    "filterTimeout": Duration(optional=True),
    "bindingTimeout": Duration(optional=True),
}
"""The fields of ``v1.DynamicResourcesArgs``."""


def defaults(gates: FeatureGates) -> DynamicResourcesArgs:
    """The defaults; a timeout that *gates* switch off is None."""
    standard = DynamicResourcesArgs()
    return DynamicResourcesArgs(
        filter_timeout_ns=standard.filter_timeout_ns if _has_filter_timeout(gates) else None,
        binding_timeout_ns=standard.binding_timeout_ns if _has_binding_timeout(gates) else None,
    )


def _has_filter_timeout(gates: FeatureGates) -> bool:
    return gates.features.dra_scheduler_filter_timeout


def _has_binding_timeout(gates: FeatureGates) -> bool:
    return gates.features.dra_device_binding_conditions and gates.features.dra_resource_claim_device_status


def convert(given: Given, default: DynamicResourcesArgs) -> DynamicResourcesArgs:
    """The fields that are *given*, the others from *default*."""
    return DynamicResourcesArgs(
        filter_timeout_ns=given.get("filterTimeout", default.filter_timeout_ns),
        binding_timeout_ns=given.get("bindingTimeout", default.binding_timeout_ns),
    )


def validate(args: DynamicResourcesArgs, at: str, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*; *at* stands before every path."""
    if args.filter_timeout_ns is not None:
        if not _has_filter_timeout(gates):
            yield forbidden(f"{at}filterTimeout", "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout_ns < 0:
            yield invalid(f"{at}filterTimeout", format_duration(args.filter_timeout_ns), "must be zero or positive")
    if args.binding_timeout_ns is not None:
        if not _has_binding_timeout(gates):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(f"{at}bindingTimeout", detail)
        elif args.binding_timeout_ns < SECOND_NS:
            yield invalid(f"{at}bindingTimeout", format_duration(args.binding_timeout_ns), "must be at least 1 second")


def dump(args: DynamicResourcesArgs) -> dict[str, Any]:
    """The fields as a completed file shows them."""
    timeout, binding = args.filter_timeout_ns, args.binding_timeout_ns
    fields: dict[str, Any] = {"filterTimeout": None if timeout is None else format_duration(timeout)}
    return fields if binding is None else fields | {"bindingTimeout": format_duration(binding)}
