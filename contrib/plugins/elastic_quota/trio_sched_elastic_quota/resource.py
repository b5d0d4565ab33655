"""The custom resource, and the limits of a namespace that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import field, frozen
from msgspec import Struct
from msgspec import field as wire_field

from trio_sched.plugin_api import (
    CustomResource,
    ObjectMeta,
    Pod,
    PodSelector,
    Quantity,
    QuantityStyle,
    format_nano,
    parse_nano,
    pod_resources,
    select_pods,
    to_amounts,
)

PODS: Final = "pods"
_NANO_PER_UNIT: Final = {"cpu": 10**6}
_BINARY: Final = ("memory", "ephemeral-storage")


class QuotaSpec(Struct, frozen=True):
    """``spec``: amounts by resource."""

    min: dict[str, Quantity] = wire_field(default_factory=dict)
    """What the namespace is guaranteed."""
    max: dict[str, Quantity] = wire_field(default_factory=dict)
    """What it may use at most; without a limit for resources that are not in it."""


class QuotaStatus(Struct, frozen=True):
    """``status``: written by the plugin now and then."""

    used: dict[str, str] = wire_field(default_factory=dict)
    borrowed: dict[str, str] = wire_field(default_factory=dict)
    message: str = ""
    """Why the quota has no effect; "" if it has."""


class Quota(Struct, frozen=True):
    """An ElasticQuota."""

    metadata: ObjectMeta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


QUOTA: Final = CustomResource("quota.trio-sched.dev", "v1alpha1", "ElasticQuota", type=Quota)


@frozen(eq=False)
class Limits:
    """What the quota of a namespace says, in milli-CPU, bytes and counts."""

    quota: Quota
    selector: PodSelector
    """The pods of the namespace."""
    staying: PodSelector
    """Those of them that are not being deleted."""
    minimum: Mapping[str, int] = field(factory=dict)
    maximum: Mapping[str, int] = field(factory=dict)
    problem: str = ""
    """What is wrong with the quota; then nothing in its namespace is scheduled."""

    @property
    def namespace(self) -> str:
        """The namespace whose limits these are."""
        return self.quota.metadata.namespace

    @property
    def resources(self) -> list[str]:
        """Those that it limits, by name."""
        return sorted({*self.minimum, *self.maximum})

    def limits(self, resource: str) -> bool:
        """Whether it says anything about *resource*."""
        return resource in self.minimum or resource in self.maximum

    def guaranteed(self, resource: str) -> int:
        """Its minimum of *resource*; 0 if it names none."""
        return self.minimum.get(resource, 0)


def limits_of(quota: Quota) -> Limits:
    """The limits that *quota* sets."""
    namespaces = [quota.metadata.namespace]
    selectors = select_pods(namespaces=namespaces), select_pods(namespaces=namespaces, without_terminating=True)
    try:
        minimum, maximum = _amounts(quota.spec.min, "min"), _amounts(quota.spec.max, "max")
        for resource, amount in maximum.items():
            if minimum.get(resource, 0) > amount:
                raise ValueError(f"spec.min.{resource} is more than spec.max.{resource}")
    except ValueError as problem:
        name = f"{quota.metadata.namespace}/{quota.metadata.name}"
        return Limits(quota, *selectors, problem=f"ElasticQuota {name} is wrong: {problem}")
    return Limits(quota, *selectors, minimum, maximum)


def _amounts(quantities: Mapping[str, Quantity], where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for resource, quantity in quantities.items():
        try:
            nano = parse_nano(quantity)
        except ValueError as problem:
            raise ValueError(f"spec.{where}.{resource}: {problem}") from None
        if nano < 0:
            raise ValueError(f"spec.{where}.{resource} must not be negative: {quantity}")
        amount = -(-nano // 10**9) if resource == PODS else to_amounts({resource: nano}).amount(resource)
        if nano and not amount:
            raise ValueError(f"spec.{where}.{resource} is no resource that pods request")
        found[resource] = amount
    return found


def effective(quotas: Iterable[Quota]) -> tuple[dict[str, Limits], list[Quota]]:
    """The limits by namespace, and the quotas without effect: of several in a namespace the oldest counts."""
    found: dict[str, Limits] = {}
    ignored: list[Quota] = []
    for quota in sorted(quotas, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name)):
        if quota.metadata.namespace in found:
            ignored.append(quota)
        else:
            found[quota.metadata.namespace] = limits_of(quota)
    return found, ignored


@frozen(eq=False)
class Pool:
    """What all quotas together say about a resource."""

    guaranteed: int
    """The sum of all guarantees."""
    selector: PodSelector
    """The pods that use it: those of all namespaces whose quota limits the resource."""


def pools(limits: Iterable[Limits]) -> dict[str, Pool]:
    """The pool of each resource that a quota limits."""
    found: dict[str, list[Limits]] = {}
    for one in limits:
        for resource in one.resources:
            found.setdefault(resource, []).append(one)
    return {
        resource: Pool(
            sum(one.guaranteed(resource) for one in members), select_pods(namespaces=[one.namespace for one in members])
        )
        for resource, members in found.items()
    }


def requested(pod: Pod) -> dict[str, int]:
    """What *pod* requests, without zeros; it counts as one of ``pods``."""
    amounts = {name: amount for name, amount in pod_resources(pod).requested.amounts() if amount > 0}
    amounts[PODS] = 1
    return amounts


def written(resource: str, amount: int) -> str:
    """*amount* as a quantity."""
    style = QuantityStyle.BINARY if resource in _BINARY else QuantityStyle.DECIMAL
    return format_nano(amount * _NANO_PER_UNIT.get(resource, 10**9), style)
