"""What the level ``restricted`` forbids besides. Source: as of `baseline`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trio_sched.simulator.admission.pod_security.baseline import BASELINE, capabilities_violation, proc_mount, seccomp
from trio_sched.simulator.admission.pod_security.subject import (
    Check,
    Subject,
    Violation,
    counted,
    named,
    quoted,
    setters,
)

_VOLUMES: Final = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"}
    | {"secret"}
)


def _privilege_escalation(subject: Subject) -> Violation | None:
    if subject.is_exempt_windows:
        return None
    names = [
        name for name, _, security in subject.containers() if security.get("allowPrivilegeEscalation") is not False
    ]
    detail = f"{named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return ("allowPrivilegeEscalation != false", detail) if names else None


def _kept_capabilities(subject: Subject) -> Violation | None:
    if subject.is_exempt_windows:
        return None
    keeping, adding, forbidden = [], [], set[str]()
    for name, _, security in subject.containers():
        capabilities = security.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        bad = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        if bad:
            adding.append(name)
            forbidden |= bad
    details = [f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    details += [capabilities_violation("", adding, forbidden)[1]] if adding else []
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _volume_types(subject: Subject) -> Violation | None:
    names, types = [], set[str]()
    for volume in subject.spec.get("volumes") or ():
        kinds = [name for name, value in volume.items() if name != "name" and value is not None]
        if _VOLUMES.isdisjoint(kinds):
            names.append(volume.get("name") or "")
            types.add(kinds[0] if kinds else "unknown")
    if not names:
        return None
    verb = counted("uses", "use", names)
    what = counted("restricted volume type", "restricted volume types", types)
    detail = f"{counted('volume', 'volumes', names)} {quoted(names)} {verb} {what} {quoted(sorted(types))}"
    return "restricted volume types", detail


def _root(subject: Subject) -> Violation | None:
    if subject.is_exempt_user_namespace:
        return None
    of_pod = subject.security.get("runAsNonRoot")
    own = [(name, security.get("runAsNonRoot")) for name, _, security in subject.containers()]
    explicit = [name for name, value in own if value is False]
    implicit = [name for name, value in own if value is None and not of_pod]
    reason = "runAsNonRoot != true"
    if explicit or of_pod is False:
        return reason, f"{setters(explicit, pod=of_pod is False)} must not set securityContext.runAsNonRoot=false"
    if implicit:
        return reason, f"pod or {named(implicit)} must set securityContext.runAsNonRoot=true"
    return None


def _root_user(subject: Subject) -> Violation | None:
    if subject.is_exempt_user_namespace:
        return None
    pod = subject.security.get("runAsUser") == 0
    containers = [name for name, _, security in subject.containers() if security.get("runAsUser") == 0]
    if not pod and not containers:
        return None
    return "runAsUser=0", f"{setters(containers, pod=pod)} must not set runAsUser=0"


def _seccomp_required(subject: Subject) -> Violation | None:
    if subject.is_exempt_windows:
        return None
    if (bad := seccomp(subject)) is not None:
        return bad
    if subject.security.get("seccompProfile") is not None:
        return None
    names = [name for name, _, security in subject.containers() if security.get("seccompProfile") is None]
    detail = f'pod or {named(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return ("seccompProfile", detail) if names else None


_RESTRICTED: Final[Mapping[str, tuple[int, Check, str]]] = {
    "allowPrivilegeEscalation": (8, _privilege_escalation, ""),
    "capabilities_restricted": (22, _kept_capabilities, "capabilities_baseline"),
    "procMount_restricted": (35, proc_mount, "procMount"),
    "restrictedVolumes": (0, _volume_types, "hostPathVolumes"),
    "runAsNonRoot": (0, _root, ""),
    "runAsUser": (23, _root_user, ""),
    "seccompProfile_restricted": (19, _seccomp_required, "seccompProfile_baseline"),
}
"""As `BASELINE`, and of that level the check that each replaces."""


def violations(subject: Subject, *, is_restricted: bool) -> list[Violation]:
    """What of *subject* a level forbids.

    Args:
        subject: what is checked, and by which version of the checks.
        is_restricted: the level is ``restricted``, else ``baseline``.
    """
    stricter = [one for one in _RESTRICTED.values() if is_restricted and one[0] <= subject.minor]
    replaced = {name for _, _, name in stricter}
    checks = [check for name, (since, check) in BASELINE.items() if since <= subject.minor and name not in replaced]
    checks += [check for _, check, _ in stricter]
    found = (check(subject) for check in checks)
    return [violation for violation in found if violation is not None]
