"""What the level ``baseline`` forbids. Source: the checks of k8s.io/pod-security-admission/policy, with their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.pod_security.subject import (
    LATEST,
    Check,
    Subject,
    Violation,
    counted,
    named,
    quoted,
    setters,
)
from trio_sched.simulator.validation.core.annotations import APP_ARMOR, POD_SECCOMP, SECCOMP

_CAPABILITIES: Final = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"}
    | {"SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)
_SYSCTLS: Final[Mapping[str, int]] = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}
"""Names, and the version from which on they are allowed."""
_SELINUX_TYPES: Final[Mapping[str, int]] = {
    "": 0,
    "container_t": 0,
    "container_init_t": 0,
    "container_kvm_t": 0,
    "container_engine_t": 31,
}
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def _app_armor(subject: Subject) -> Violation | None:
    def is_bad(security: Json) -> bool:
        return security.get("appArmorProfile") is not None and _type(security) not in _PROFILES

    def _type(security: Json) -> str:
        return security["appArmorProfile"].get("type") or ""

    contexts = [(name, security) for name, _, security in subject.containers() if is_bad(security)]
    values = {_type(security) for _, security in contexts}
    who = ["pod"] if is_bad(subject.security) else []
    if who:
        values.add(_type(subject.security))
    if contexts:
        who.append(named([name for name, _ in contexts]))
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in subject.annotations.items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        who.append(counted("annotation", "annotations", annotations))
    if not who:
        return None
    shown = [*sorted(values), *annotations]
    reason = counted("forbidden AppArmor profile", "forbidden AppArmor profiles", shown)
    return reason, f"{' and '.join(who)} must not set AppArmor profile type to {quoted(shown)}"


def _added_capabilities(subject: Subject) -> Violation | None:
    containers, forbidden = [], set[str]()
    for name, _, security in subject.containers():
        bad = set((security.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if bad:
            containers.append(name)
            forbidden |= bad
    return capabilities_violation("non-default capabilities", containers, forbidden) if containers else None


def capabilities_violation(reason: str, containers: Sequence[str], forbidden: set[str]) -> Violation:
    """Containers that add capabilities which are *forbidden*."""
    shown = quoted(sorted(forbidden))
    return reason, f"{named(containers)} must not include {shown} in securityContext.capabilities.add"


def _host_namespaces(subject: Subject) -> Violation | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if subject.spec.get(name)]
    return ("host namespaces", ", ".join(used)) if used else None


def _host_paths(subject: Subject) -> Violation | None:
    names = [one.get("name") or "" for one in subject.spec.get("volumes") or () if one.get("hostPath") is not None]
    return ("hostPath volumes", f"{counted('volume', 'volumes', names)} {quoted(names)}") if names else None


def _host_ports(subject: Subject) -> Violation | None:
    containers, ports = [], set[str]()
    for name, container, _ in subject.containers():
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            containers.append(name)
            ports |= used
    if not containers:
        return None
    verb, what = counted("uses", "use", containers), counted("hostPort", "hostPorts", ports)
    return "hostPort", f"{named(containers)} {verb} {what} {', '.join(sorted(ports))}"


def _probe_hosts(subject: Subject) -> Violation | None:
    containers, hosts = set[str](), set[str]()
    for name, container, _ in subject.containers():
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
        actions = [(handler or {}).get(kind) or {} for handler in handlers for kind in ("httpGet", "tcpSocket")]
        used = {str(action["host"]) for action in actions if action.get("host")}
        if used:
            containers.add(name)
            hosts |= used
    if not containers:
        return None
    what = counted("probe or lifecycle host", "probe or lifecycle hosts", hosts)
    verb = counted("uses", "use", containers)
    return "probe or lifecycle host", f"{named(sorted(containers))} {verb} {what} {quoted(sorted(hosts))}"


def _privileged(subject: Subject) -> Violation | None:
    names = [name for name, _, security in subject.containers() if security.get("privileged")]
    return ("privileged", f"{named(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount_unless_user_namespace(subject: Subject) -> Violation | None:
    return None if subject.is_exempt_user_namespace else proc_mount(subject)


def proc_mount(subject: Subject) -> Violation | None:
    """Containers that see more of ``/proc``."""
    mounts = [(name, security.get("procMount")) for name, _, security in subject.containers()]
    bad = [(name, mount) for name, mount in mounts if mount not in (None, "Default")]
    if not bad:
        return None
    values = quoted(sorted({str(mount) for _, mount in bad}))
    return "procMount", f"{named([name for name, _ in bad])} must not set securityContext.procMount to {values}"


def _selinux(subject: Subject) -> Violation | None:
    types, set_names = set[str](), set[str]()

    def is_bad(security: Json) -> bool:
        options = security.get("seLinuxOptions") or {}
        type_ = options.get("type") or ""
        forbidden = {name for name in ("user", "role") if options.get(name)}
        set_names.update(forbidden)
        if _SELINUX_TYPES.get(type_, LATEST + 1) > subject.minor:
            types.add(type_)
            return True
        return bool(forbidden)

    pod = is_bad(subject.security)
    containers = [name for name, _, security in subject.containers() if is_bad(security)]
    if not pod and not containers:
        return None
    data = [f"{counted('type', 'types', types)} {quoted(sorted(types))}"] if types else []
    data += [f"{name} may not be set" for name in ("user", "role") if name in set_names]
    who = setters(containers, pod=pod)
    return "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def seccomp(subject: Subject) -> Violation | None:
    """Profiles that do not confine."""
    if subject.minor < 19:
        return _seccomp_annotations(subject)
    containers, values = [], set[str]()
    for name, _, security in subject.containers():
        if (bad := _bad_seccomp(security)) is not None:
            containers.append(name)
            values.add(bad)
    of_pod = _bad_seccomp(subject.security)
    if of_pod is not None:
        values.add(of_pod)
    elif not containers:
        return None
    who = setters(containers, pod=of_pod is not None)
    shown = quoted(sorted(values))
    return "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {shown}"


def _bad_seccomp(security: Json) -> str | None:
    profile = security.get("seccompProfile")
    type_ = "" if profile is None else profile.get("type") or ""
    return None if profile is None or type_ in _PROFILES else type_


def _seccomp_annotations(subject: Subject) -> Violation | None:
    keys = [POD_SECCOMP, *(f"{SECCOMP}{name}" for name, _, _ in subject.containers())]
    bad = {
        f'{key}="{subject.annotations[key]}"'
        for key in keys
        if key in subject.annotations
        and subject.annotations[key] not in ("runtime/default", "docker/default")
        and not subject.annotations[key].startswith("localhost/")
    }
    if not bad:
        return None
    return "seccompProfile", f"forbidden {counted('annotation', 'annotations', bad)} {', '.join(sorted(bad))}"


def _sysctls(subject: Subject) -> Violation | None:
    names = [one.get("name") or "" for one in subject.security.get("sysctls") or ()]
    bad = [name for name in names if _SYSCTLS.get(name, LATEST + 1) > subject.minor]
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(subject: Subject) -> Violation | None:
    def is_bad(security: Json) -> bool:
        return bool((security.get("windowsOptions") or {}).get("hostProcess"))

    pod = is_bad(subject.security)
    containers = [name for name, _, security in subject.containers() if is_bad(security)]
    if not pod and not containers:
        return None
    who = setters(containers, pod=pod)
    return "hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true"


BASELINE: Final[Mapping[str, tuple[int, Check]]] = {
    "appArmorProfile": (0, _app_armor),
    "capabilities_baseline": (0, _added_capabilities),
    "hostNamespaces": (0, _host_namespaces),
    "hostPathVolumes": (0, _host_paths),
    "hostPorts": (0, _host_ports),
    "hostProbesAndHostLifecycle": (34, _probe_hosts),
    "privileged": (0, _privileged),
    "procMount": (0, _proc_mount_unless_user_namespace),
    "seLinuxOptions": (0, _selinux),
    "seccompProfile_baseline": (0, seccomp),
    "sysctls": (0, _sysctls),
    "windowsHostProcess": (0, _host_process),
}
"""Names, in their order in messages; the version from which on there is such a check, and the check."""
