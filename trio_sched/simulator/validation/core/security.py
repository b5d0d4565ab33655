"""Rules of the security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.containers import placed_containers
from trio_sched.simulator.validation.core.volumes import descending_path_problems
from trio_sched.simulator.validation.core.windows import windows_option_problems
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    too_long,
    unsupported,
)

MAX_ID: Final = (1 << 31) - 1
ID_RULE: Final = f"must be between 0 and {MAX_ID}, inclusive"
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_RULE: Final = (
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_NOT_ON_WINDOWS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_NOT_ON_WINDOWS_CONTAINERS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)
_HOST_FIELDS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace")


def pod_security_problems(context: Json, spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the security context of a pod with *spec*."""
    yield from _id_problems(context, path, ("fsGroup", "runAsUser", "runAsGroup"))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= MAX_ID:
            yield bad_value(f"{path}.supplementalGroups[{index}]", group, ID_RULE)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield bad_value(f"{path}.shareProcessNamespace", True, detail)
    yield from _sysctl_problems(context.get("sysctls") or [], spec, f"{path}.sysctls")
    for field, choices in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if context.get(field) is not None and context[field] not in choices:
            yield unsupported(f"{path}.{field}", context[field], choices)
    yield from _profile_problems(context, path)


def container_security_problems(context: Json, path: str, *, host_users: bool) -> Iterator[FieldProblem]:
    """What is wrong with the security context of a container.

    Args:
        context: the security context.
        path: where it is.
        host_users: whether the pod shares the users of the host.
    """
    yield from _id_problems(context, path, ("runAsUser", "runAsGroup"))
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        yield unsupported(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if mount == "Unmasked" and host_users:
        yield bad_value(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield bad_value(path, context, detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield bad_value(path, context, detail)
    yield from _profile_problems(context, path)


def _id_problems(context: Json, path: str, fields: tuple[str, ...]) -> Iterator[FieldProblem]:
    for field in fields:
        number = context.get(field)
        if number is not None and not 0 <= number <= MAX_ID:
            yield bad_value(f"{path}.{field}", number, ID_RULE)


def _sysctl_problems(sysctls: list[Json], spec: Json, path: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, where = sysctl.get("name") or "", f"{path}[{index}].name"
        if not name:
            yield required(where)
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield bad_value(where, name, _SYSCTL_RULE)
        elif name in seen:
            yield duplicate(where, name)
        normal = name.replace("/", ".")
        if spec.get("hostNetwork") and normal.startswith("net."):
            yield bad_value(where, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and normal.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            yield bad_value(where, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _profile_problems(context: Json, path: str) -> Iterator[FieldProblem]:
    if (windows := context.get("windowsOptions")) is not None:
        yield from windows_option_problems(windows, f"{path}.windowsOptions")
    if (seccomp := context.get("seccompProfile")) is not None:
        yield from _seccomp_problems(seccomp, f"{path}.seccompProfile")
    if (armor := context.get("appArmorProfile")) is not None:
        yield from _app_armor_problems(armor, f"{path}.appArmorProfile")


def _seccomp_problems(profile: Json, path: str) -> Iterator[FieldProblem]:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{path}.type", kind, _PROFILES)
    if kind != "Localhost":
        if local is not None:
            yield bad_value(f"{path}.localhostProfile", profile, "can only be set when seccomp type is Localhost")
    elif local is None:
        yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from descending_path_problems(local, f"{path}.localhostProfile")


def _app_armor_problems(profile: Json, path: str) -> Iterator[FieldProblem]:
    kind, where = profile.get("type") or "", f"{path}.localhostProfile"
    local: str | None = profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if local is not None:
            yield bad_value(where, local, "can only be set when AppArmor type is Localhost")
    elif not local or not local.strip():
        yield required(where, "must be set when AppArmor type is Localhost")
    elif local != local.strip():
        yield bad_value(where, local, "must not be padded with whitespace")
    elif len(local) > 4095:
        yield too_long(where, 4095)


def operating_system_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``os`` of a pod, and what else that forbids."""
    name = (spec.get("os") or {}).get("name") or ""
    if not name:
        yield required(f"{path}.os.name")
        return
    if name not in ("linux", "windows"):
        yield unsupported(f"{path}.os", name, ("linux", "windows"))
        return
    fields = ("windowsOptions",) if name == "linux" else _NOT_ON_WINDOWS
    detail = "windows options cannot be set for a linux pod" if name == "linux" else "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    for field in fields:
        if context.get(field) is not None and (field, context[field]) != ("sysctls", []):
            yield forbidden_field(f"{path}.securityContext.{field}", detail)
    for field in _HOST_FIELDS if name == "windows" else ():
        if spec.get(field) not in (None, False) or (field in ("hostUsers", "shareProcessNamespace") and field in spec):
            yield forbidden_field(f"{path}.{field}", detail)
    own = ("windowsOptions",) if name == "linux" else _NOT_ON_WINDOWS_CONTAINERS
    for container, where in placed_containers(spec, path):
        of_container = container.get("securityContext") or {}
        for field in own:
            if of_container.get(field) is not None:
                yield forbidden_field(f"{where}.securityContext.{field}", detail)
