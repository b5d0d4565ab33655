"""Rules of the addresses of Services and of their families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, duplicate, unsupported
from trio_sched.simulator.validation.meta.shapes import Json

_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_FAMILIES: Final = ("IPv4", "IPv6")
_ONE_FAMILY: Final = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"


def address_problems(spec: Json, addresses: list[str]) -> Iterator[FieldProblem]:
    """What is wrong with the *addresses* of a Service that has some, and with their families."""
    path, first = "spec.clusterIPs", spec.get("clusterIP")
    if spec.get("clusterIPs") and not first:
        yield bad_value(path, addresses, "must be empty when `clusterIP` is not specified")
    elif spec.get("clusterIPs") and addresses[0] != first:
        yield bad_value(path, addresses, "first value must match `clusterIP`")
    is_headless = addresses[:1] == ["None"]
    if is_headless and len(addresses) > 1:
        yield bad_value(path, addresses, "'None' must be the first and only value")
    if len(addresses) > 2:
        yield bad_value(path, addresses, "may only hold up to 2 values")
    is_right = True
    for index, address in enumerate(addresses[1:] if is_headless else addresses, start=int(is_headless)):
        if problem := names.ip_address(address):
            is_right = False
            yield bad_value(f"{path}[{index}]", address, problem)
    yield from _family_problems(spec)
    if is_right and not is_headless:
        yield from _matching_problems(spec, addresses)


def _family_problems(spec: Json) -> Iterator[FieldProblem]:
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield unsupported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    if policy is not None and policy not in _POLICIES:
        yield unsupported("spec.ipFamilyPolicy", policy, _POLICIES)
    if policy in (None, "SingleStack") and len(families) == 2:
        yield bad_value("spec.ipFamilyPolicy", policy, f"{_ONE_FAMILY} IP families are specified")


def _matching_problems(spec: Json, addresses: list[str]) -> Iterator[FieldProblem]:
    """Whether the addresses, which are addresses, are of the families that the Service has."""
    found = ["IPv6" if ":" in address else "IPv4" for address in addresses]
    if len(found) == 2 and found[0] == found[1]:
        yield bad_value("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family")
    for index, (family, wanted) in enumerate(zip(found, spec.get("ipFamilies") or (), strict=False)):
        if family != wanted and wanted in _FAMILIES:
            detail = f"expected an {wanted} value as indicated by `ipFamilies[{index}]`"
            yield bad_value(f"spec.clusterIPs[{index}]", addresses[index], detail)
    if len(addresses) == 2 and spec.get("ipFamilyPolicy") in (None, "SingleStack"):
        yield bad_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), f"{_ONE_FAMILY} cluster IPs are specified")
    if len(addresses) < 2 and spec.get("ipFamilyPolicy") == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield bad_value("spec.ipFamilyPolicy", "RequireDualStack", detail)
