"""The requests of claims, in the form in which devices are looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field, frozen

from trio_sched.plugin_api import (
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    parse_nano,
)

MAX_RESULTS = 32
"""Devices that a claim can have."""
EXACT_COUNT = "ExactCount"
ALL = "All"


@define(eq=False)
class Wanted:
    """A request, or one alternative of a request."""

    name: str
    parent: str
    """The name of the request of which it is an alternative; "" if it is none."""
    spec: ExactDeviceRequest | DeviceSubRequest
    selectors: tuple[str | None, ...]
    """CEL expressions; None in place of a selector of another kind."""
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, int] | None
    """Requested amounts, in nano units."""
    admin_access: bool
    has_admin_access: bool

    @property
    def full_name(self) -> str:
        """As in the results of an allocation."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request_name(self) -> str:
        """The name of the whole request."""
        return self.parent or self.name

    @property
    def class_name(self) -> str:
        """The name of the device class."""
        return self.spec.device_class_name

    @property
    def mode(self) -> str:
        """`EXACT_COUNT` or `ALL`."""
        return self.spec.allocation_mode

    @property
    def count(self) -> int:
        """How many devices, in the mode `EXACT_COUNT`."""
        return self.spec.count

    def is_among(self, names: Iterable[str]) -> bool:
        """Whether *names* name it, or the request of which it is an alternative."""
        return self.request_name in names or (bool(self.parent) and self.full_name in names)


@frozen(eq=False)
class WantedRequest:
    """A request with its alternatives; without a prioritised list there is one."""

    name: str
    alternatives: tuple[Wanted, ...]
    is_list: bool


@define(eq=False)
class WantedClaim:
    """A claim for which devices are looked for."""

    claim: ResourceClaim
    requests: tuple[WantedRequest, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.requests = tuple(_request(one) for one in self.claim.spec.devices.requests or ())

    def __str__(self) -> str:
        metadata = self.claim.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        """Across its devices."""
        return self.claim.spec.devices.constraints or ()

    def alternatives(self) -> Iterator[Wanted]:
        """All alternatives of all requests."""
        for request in self.requests:
            yield from request.alternatives


def _request(request: DeviceRequest) -> WantedRequest:
    if request.first_available:
        alternatives = tuple(_wanted(one.name, request.name, one) for one in request.first_available)
        return WantedRequest(request.name, alternatives, is_list=True)
    return WantedRequest(request.name, (_wanted(request.name, "", request.exactly or ExactDeviceRequest()),), False)


def _wanted(name: str, parent: str, spec: ExactDeviceRequest | DeviceSubRequest) -> Wanted:
    requests = None if spec.capacity is None else spec.capacity.requests
    admin_access = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
    return Wanted(
        name=name,
        parent=parent,
        spec=spec,
        selectors=tuple(one.cel.expression if one.cel is not None else None for one in spec.selectors or ()),
        tolerations=spec.tolerations or (),
        capacity=None if requests is None else {name: parse_nano(value) for name, value in requests.items()},
        admin_access=bool(admin_access),
        has_admin_access=admin_access is not None,
    )
