"""Families of addresses that Services get; the simulated cluster has IPv4 only, as most have.

Source: ``initIPFamilyFields`` in ``pkg/registry/core/service/storage/alloc.go`` of Kubernetes.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

_OTHER: Final = {"IPv4": "IPv6", "IPv6": "IPv4"}


def fill_families(spec: Json, before: Json | None = None) -> None:
    """Fill in ``ipFamilyPolicy`` and ``ipFamilies`` of a Service; *before* is the spec of one that is changed."""
    if spec.get("type") == "ExternalName":
        return
    # Others make its endpoints, which may be of any family.
    is_free = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        held = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = held or ("RequireDualStack" if is_free else "SingleStack")
    addresses: list[str] = [one for one in spec.get("clusterIPs") or () if one != "None"]
    families: list[str] = list(spec.get("ipFamilies") or ())
    families += ["IPv6" if ":" in address else "IPv4" for address in addresses[len(families) :]]
    families = families or ["IPv4"]
    if is_free and len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack" and families[0] in _OTHER:
        families.append(_OTHER[families[0]])
    spec["ipFamilies"] = families
