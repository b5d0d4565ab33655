"""The Pod Security Standards: what the levels ``baseline`` and ``restricted`` forbid in a pod.

Source: the checks of Kubernetes' k8s.io/pod-security-admission/policy up to 1.36, with their texts. A check has changed
from version to version; namespaces choose one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from trio_sched.simulator.validation.annotations import APP_ARMOR, POD_SECCOMP, SECCOMP

Json = dict[str, Any]

LATEST: Final = 35
"""The minor version in which a check has changed last."""
_WINDOWS_EXEMPT: Final = 25
_USER_NAMESPACES_EXEMPT: Final = 35
_CAPABILITIES: Final = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"}
    | {"SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)
_VOLUMES: Final = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"}
    | {"secret"}
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


@frozen
class Subject:
    """A pod, or a template of pods, as the checks see it."""

    annotations: Json
    spec: Json
    minor: int
    """The version of the checks."""

    @property
    def security(self) -> Json:
        """The security context of the pod."""
        security: Json = self.spec.get("securityContext") or {}
        return security

    @property
    def is_exempt_windows(self) -> bool:
        """Whether it runs on Windows, which most fields of the security context mean nothing to."""
        return self.minor >= _WINDOWS_EXEMPT and (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def is_exempt_user_namespace(self) -> bool:
        """Whether its users are not those of the host."""
        return self.minor >= _USER_NAMESPACES_EXEMPT and self.spec.get("hostUsers") is False

    def containers(self) -> Iterator[tuple[str, Json, Json]]:
        """Name, fields and security context of every container."""
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for container in self.spec.get(kind) or ():
                yield container.get("name") or "", container, container.get("securityContext") or {}


Violation = tuple[str, str]
"""What is forbidden, in short, and where."""
Check = Callable[[Subject], Violation | None]


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _counted(one: str, many: str, items: Sequence[object] | set[str]) -> str:
    return one if len(items) == 1 else many


def _named(containers: Sequence[str]) -> str:
    return f"{_counted('container', 'containers', containers)} {_quoted(containers)}"


def _setters(containers: Sequence[str], *, pod: bool) -> str:
    return " and ".join([*(["pod"] if pod else []), *([_named(containers)] if containers else [])])


# --- baseline -------------------------------------------------------------------------------------------------------


def _app_armor(subject: Subject) -> Violation | None:
    def is_bad(security: Json) -> bool:
        return security.get("appArmorProfile") is not None and _type(security) not in _PROFILES

    def _type(security: Json) -> str:
        return security["appArmorProfile"].get("type") or ""

    contexts = [(name, security) for name, _, security in subject.containers() if is_bad(security)]
    values = {_type(security) for _, security in contexts}
    setters = [*(["pod"] if is_bad(subject.security) else [])]
    if setters:
        values.add(_type(subject.security))
    if contexts:
        setters.append(_named([name for name, _ in contexts]))
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in subject.annotations.items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if annotations:
        setters.append(_counted("annotation", "annotations", annotations))
    if not setters:
        return None
    shown = [*sorted(values), *annotations]
    reason = _counted("forbidden AppArmor profile", "forbidden AppArmor profiles", shown)
    return reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(shown)}"


def _added_capabilities(subject: Subject) -> Violation | None:
    containers, forbidden = [], set[str]()
    for name, _, security in subject.containers():
        bad = set((security.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if bad:
            containers.append(name)
            forbidden |= bad
    return _capabilities_violation("non-default capabilities", containers, forbidden) if containers else None


def _capabilities_violation(reason: str, containers: Sequence[str], forbidden: set[str]) -> Violation:
    shown = _quoted(sorted(forbidden))
    return reason, f"{_named(containers)} must not include {shown} in securityContext.capabilities.add"


def _host_namespaces(subject: Subject) -> Violation | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if subject.spec.get(name)]
    return ("host namespaces", ", ".join(used)) if used else None


def _host_paths(subject: Subject) -> Violation | None:
    names = [one.get("name") or "" for one in subject.spec.get("volumes") or () if one.get("hostPath") is not None]
    return ("hostPath volumes", f"{_counted('volume', 'volumes', names)} {_quoted(names)}") if names else None


def _host_ports(subject: Subject) -> Violation | None:
    containers, ports = [], set[str]()
    for name, container, _ in subject.containers():
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            containers.append(name)
            ports |= used
    if not containers:
        return None
    verb, what = _counted("uses", "use", containers), _counted("hostPort", "hostPorts", ports)
    return "hostPort", f"{_named(containers)} {verb} {what} {', '.join(sorted(ports))}"


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
    what = _counted("probe or lifecycle host", "probe or lifecycle hosts", hosts)
    verb = _counted("uses", "use", containers)
    return "probe or lifecycle host", f"{_named(sorted(containers))} {verb} {what} {_quoted(sorted(hosts))}"


def _privileged(subject: Subject) -> Violation | None:
    names = [name for name, _, security in subject.containers() if security.get("privileged")]
    return ("privileged", f"{_named(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount_unless_user_namespace(subject: Subject) -> Violation | None:
    return None if subject.is_exempt_user_namespace else _proc_mount(subject)


def _proc_mount(subject: Subject) -> Violation | None:
    mounts = [(name, security.get("procMount")) for name, _, security in subject.containers()]
    bad = [(name, mount) for name, mount in mounts if mount not in (None, "Default")]
    if not bad:
        return None
    values = _quoted(sorted({str(mount) for _, mount in bad}))
    return "procMount", f"{_named([name for name, _ in bad])} must not set securityContext.procMount to {values}"


def _selinux(subject: Subject) -> Violation | None:
    types, set_names = set[str](), set[str]()

    def is_bad(security: Json) -> bool:
        options = security.get("seLinuxOptions") or {}
        type_ = options.get("type") or ""
        named = {name for name in ("user", "role") if options.get(name)}
        set_names.update(named)
        if _SELINUX_TYPES.get(type_, LATEST + 1) > subject.minor:
            types.add(type_)
            return True
        return bool(named)

    pod = is_bad(subject.security)
    containers = [name for name, _, security in subject.containers() if is_bad(security)]
    if not pod and not containers:
        return None
    data = [f"{_counted('type', 'types', types)} {_quoted(sorted(types))}"] if types else []
    data += [f"{name} may not be set" for name in ("user", "role") if name in set_names]
    setters = _setters(containers, pod=pod)
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def _seccomp(subject: Subject) -> Violation | None:
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
    setters = _setters(containers, pod=of_pod is not None)
    shown = _quoted(sorted(values))
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {shown}"


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
    return "seccompProfile", f"forbidden {_counted('annotation', 'annotations', bad)} {', '.join(sorted(bad))}"


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
    setters = _setters(containers, pod=pod)
    return "hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true"


# --- restricted -----------------------------------------------------------------------------------------------------


def _privilege_escalation(subject: Subject) -> Violation | None:
    if subject.is_exempt_windows:
        return None
    names = [
        name for name, _, security in subject.containers() if security.get("allowPrivilegeEscalation") is not False
    ]
    detail = f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"
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
    details = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    details += [_capabilities_violation("", adding, forbidden)[1]] if adding else []
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
    verb = _counted("uses", "use", names)
    what = _counted("restricted volume type", "restricted volume types", types)
    detail = f"{_counted('volume', 'volumes', names)} {_quoted(names)} {verb} {what} {_quoted(sorted(types))}"
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
        return reason, f"{_setters(explicit, pod=of_pod is False)} must not set securityContext.runAsNonRoot=false"
    if implicit:
        return reason, f"pod or {_named(implicit)} must set securityContext.runAsNonRoot=true"
    return None


def _root_user(subject: Subject) -> Violation | None:
    if subject.is_exempt_user_namespace:
        return None
    pod = subject.security.get("runAsUser") == 0
    containers = [name for name, _, security in subject.containers() if security.get("runAsUser") == 0]
    if not pod and not containers:
        return None
    return "runAsUser=0", f"{_setters(containers, pod=pod)} must not set runAsUser=0"


def _seccomp_required(subject: Subject) -> Violation | None:
    if subject.is_exempt_windows:
        return None
    if (bad := _seccomp(subject)) is not None:
        return bad
    if subject.security.get("seccompProfile") is not None:
        return None
    names = [name for name, _, security in subject.containers() if security.get("seccompProfile") is None]
    detail = f'pod or {_named(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return ("seccompProfile", detail) if names else None


_BASELINE: Final[Mapping[str, tuple[int, Check]]] = {
    "appArmorProfile": (0, _app_armor),
    "capabilities_baseline": (0, _added_capabilities),
    "hostNamespaces": (0, _host_namespaces),
    "hostPathVolumes": (0, _host_paths),
    "hostPorts": (0, _host_ports),
    "hostProbesAndHostLifecycle": (34, _probe_hosts),
    "privileged": (0, _privileged),
    "procMount": (0, _proc_mount_unless_user_namespace),
    "seLinuxOptions": (0, _selinux),
    "seccompProfile_baseline": (0, _seccomp),
    "sysctls": (0, _sysctls),
    "windowsHostProcess": (0, _host_process),
}
"""Names, in their order in messages; the version from which on there is such a check, and the check."""
_RESTRICTED: Final[Mapping[str, tuple[int, Check, str]]] = {
    "allowPrivilegeEscalation": (8, _privilege_escalation, ""),
    "capabilities_restricted": (22, _kept_capabilities, "capabilities_baseline"),
    "procMount_restricted": (35, _proc_mount, "procMount"),
    "restrictedVolumes": (0, _volume_types, "hostPathVolumes"),
    "runAsNonRoot": (0, _root, ""),
    "runAsUser": (23, _root_user, ""),
    "seccompProfile_restricted": (19, _seccomp_required, "seccompProfile_baseline"),
}
"""As above, and of the level ``baseline`` the check that it replaces."""


def violations(subject: Subject, *, is_restricted: bool) -> list[Violation]:
    """What of *subject* a level forbids.

    Args:
        subject: what is checked, and by which version of the checks.
        is_restricted: the level is ``restricted``, else ``baseline``.
    """
    stricter = [one for one in _RESTRICTED.values() if is_restricted and one[0] <= subject.minor]
    replaced = {name for _, _, name in stricter}
    checks = [check for name, (since, check) in _BASELINE.items() if since <= subject.minor and name not in replaced]
    checks += [check for _, check, _ in stricter]
    found = (check(subject) for check in checks)
    return [violation for violation in found if violation is not None]
