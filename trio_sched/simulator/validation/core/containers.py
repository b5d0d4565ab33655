"""Rules of the containers of pods."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any, Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.environment import source_list_problems, variable_problems
from trio_sched.simulator.validation.core.resources import requirement_problems
from trio_sched.simulator.validation.core.security import container_security_problems
from trio_sched.simulator.validation.core.volumes import Volumes, backstep_problems, descending_path_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    not_found_value,
    required,
    too_many,
    unsupported,
)

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_NOT_EPHEMERAL: Final = (
    *("ports", "resources", "resizePolicy", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"),
    *("restartPolicy", "restartPolicyRules"),
)


@frozen(kw_only=True)
class PodContext:
    """What rules of containers have to know of their pod.

    Attributes:
        volumes: the volumes that are right, by name.
        claims: the names of the pod's resource claims.
        restart_policy: its restart policy.
        grace_seconds: its grace period; None if it has none.
        host_users: whether it shares the users of the host.
        system: the name of its operating system; empty if it says nothing.
    """

    volumes: Volumes
    claims: Set[str]
    restart_policy: str
    grace_seconds: int | None
    host_users: bool
    system: str


def container_problems(containers: list[Json], path: str, pod: PodContext) -> Iterator[FieldProblem]:
    """What is wrong with the containers of a pod."""
    if not containers:
        yield required(path)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _common_problems(container, where, pod)
        yield from _name_again(container, where, seen)
        yield from _running_problems(container, where, pod)
        yield from _restart_problems(container, where)
    yield from _host_port_problems(containers, path)


def init_container_problems(
    containers: list[Json], path: str, others: list[Json], pod: PodContext
) -> Iterator[FieldProblem]:
    """What is wrong with the init containers of a pod with the containers *others*."""
    seen = {container.get("name") or "" for container in others}
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _common_problems(container, where, pod)
        yield from _restart_problems(container, where)
        yield from _name_again(container, where, seen)
        yield from _host_port_problems([container], path)
        if container.get("restartPolicy") == "Always":
            yield from _running_problems(container, where, pod)
            continue
        for field in ("lifecycle", *_PROBES):
            # Stop signals are dropped, since their feature gate is off by default.
            if (given := container.get(field)) is not None and given.keys() != {"stopSignal"}:
                detail = "may not be set for init containers without restartPolicy=Always"
                yield forbidden_field(f"{where}.{field}", detail)
        for number, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield bad_value(f"{where}.resizePolicy[{number}].restartPolicy", "RestartContainer", detail)


def ephemeral_container_problems(
    containers: list[Json], path: str, others: list[Json], pod: PodContext
) -> Iterator[FieldProblem]:
    """What is wrong with the ephemeral containers of a pod with the containers *others*."""
    targets = {container.get("name") or "" for container in others}
    seen = set(targets)
    for index, container in enumerate(containers):
        where = f"{path}[{index}]"
        yield from _common_problems(container, where, pod)
        yield from _name_again(container, where, seen)
        target = container.get("targetContainerName") or ""
        if target and target not in targets:
            yield not_found_value(f"{where}.targetContainerName", target)
        for field in _NOT_EPHEMERAL:
            if container.get(field) not in (None, [], {}):
                yield forbidden_field(f"{where}.{field}", "cannot be set for an Ephemeral Container")


def _name_again(container: Json, path: str, seen: set[str]) -> Iterator[FieldProblem]:
    name = container.get("name") or ""
    if name in seen:
        yield duplicate(f"{path}.name", name)
    elif name:
        seen.add(name)


def _common_problems(container: Json, path: str, pod: PodContext) -> Iterator[FieldProblem]:
    name, image = container.get("name") or "", container.get("image") or ""
    if not name:
        yield required(f"{path}.name")
    elif problem := names.dns_label(name):
        yield bad_value(f"{path}.name", name, problem)
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield bad_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    for field, choices in (
        ("terminationMessagePolicy", _MESSAGE_POLICIES),
        ("imagePullPolicy", _PULL_POLICIES),
    ):
        yield from choice_problems(container, field, choices, path)
    if ports := container.get("ports"):
        yield from _port_problems(ports, f"{path}.ports")
    if variables := container.get("env"):
        yield from variable_problems(variables, f"{path}.env")
    if sources := container.get("envFrom"):
        yield from source_list_problems(sources, f"{path}.envFrom")
    mounts, devices = container.get("volumeMounts") or [], container.get("volumeDevices") or []
    yield from _mount_problems(mounts, devices, container, f"{path}.volumeMounts", pod.volumes)
    yield from _device_problems(devices, mounts, f"{path}.volumeDevices", pod.volumes)
    if resources := container.get("resources"):
        yield from requirement_problems(resources, f"{path}.resources", pod.claims)
    if policies := container.get("resizePolicy"):
        yield from _resize_problems(policies, f"{path}.resizePolicy", pod.restart_policy)
    if context := container.get("securityContext"):
        yield from container_security_problems(context, f"{path}.securityContext", host_users=pod.host_users)


def choice_problems(value: Json, field: str, choices: tuple[str, ...], path: str) -> Iterator[FieldProblem]:
    """Whether *field* of *value*, which has a default, is none of *choices*."""
    given = value.get(field, choices[0])
    if given == "":
        yield required(f"{path}.{field}")
    elif given not in choices:
        yield unsupported(f"{path}.{field}", given, choices)


def _port_problems(ports: list[Json], path: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"{path}[{index}]", port.get("name") or ""
        if name and (problem := names.port_name(name)):
            yield bad_value(f"{where}.name", name, problem)
        elif name and name in seen:
            yield duplicate(f"{where}.name", name)
        seen.add(name)
        number, on_host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not number:
            yield required(f"{where}.containerPort")
        elif problem := names.port_number(number):
            yield bad_value(f"{where}.containerPort", number, problem)
        if on_host and (problem := names.port_number(on_host)):
            yield bad_value(f"{where}.hostPort", on_host, problem)
        protocol = port.get("protocol") or "TCP"
        if protocol not in _PROTOCOLS:
            yield unsupported(f"{where}.protocol", protocol, _PROTOCOLS)


def _host_port_problems(containers: list[Json], path: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{port['hostPort']}"
                if key in seen:
                    yield duplicate(f"{path}[{index}].ports[{number}].hostPort", key)
                seen.add(key)


def _mount_problems(
    mounts: list[Json], devices: list[Json], container: Json, path: str, volumes: Volumes
) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    device_names = {device.get("name") for device in devices}
    device_paths = {device.get("devicePath") for device in devices}
    for index, mount in enumerate(mounts):
        where, name, target = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield not_found_value(f"{where}.name", name)
        if not target:
            yield required(f"{where}.mountPath")
        if target in seen:
            yield bad_value(f"{where}.mountPath", target, "must be unique")
        seen.add(target)
        if name in device_names:
            yield bad_value(f"{where}.name", name, "must not already exist in volumeDevices")
        if target in device_paths:
            yield bad_value(f"{where}.mountPath", target, "must not already exist as a path in volumeDevices")
        below, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
        yield from descending_path_problems(below, f"{path}.subPath")
        if expression and below:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield bad_value(f"{where}.subPathExpr", expression, detail)
        yield from descending_path_problems(expression, f"{path}.subPathExpr")
        yield from _propagation_problems(mount, container, path)


def _propagation_problems(mount: Json, container: Json, path: str) -> Iterator[FieldProblem]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    choices = ("Bidirectional", "HostToContainer", "None")
    if propagation is not None and propagation not in choices:
        yield unsupported(f"{path}.mountPropagation", propagation, choices)
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden_field(f"{path}.mountPropagation", detail)
    where = f"{path}.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden_field(where, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden_field(where, "may only be specified when mountPropagation is None or not specified")
    elif recursive not in (None, "Disabled"):
        yield unsupported(where, recursive, ("Disabled", "Enabled", "IfPossible"))


def _device_problems(devices: list[Json], mounts: list[Json], path: str, volumes: Volumes) -> Iterator[FieldProblem]:
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    mount_names = {mount.get("name") for mount in mounts}
    mount_paths = {mount.get("mountPath") for mount in mounts}
    for index, device in enumerate(devices):
        where, name, target = f"{path}[{index}]", device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        if not name:
            yield required(f"{where}.name")
        if name in seen_names:
            yield bad_value(f"{where}.name", name, "must be unique")
        if volume is None:
            yield not_found_value(f"{where}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield bad_value(f"{where}.name", name, detail)
        if not target:
            yield required(f"{where}.devicePath")
        if target in seen_paths:
            yield bad_value(f"{where}.devicePath", target, "must be unique")
        if any(backstep_problems(target, "")):
            yield bad_value(f"{where}.devicePath", target, "can not contain backsteps ('..')")
        else:
            seen_paths.add(target)
        if name in mount_names:
            yield bad_value(f"{where}.name", name, "must not already exist in volumeMounts")
        if target in mount_paths:
            yield bad_value(f"{where}.devicePath", target, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)


def _resize_problems(policies: list[Json], path: str, restart_policy: str) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if resource in seen:
            yield duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        for value, choices in ((resource, ("cpu", "memory")), (restart, ("NotRequired", "RestartContainer"))):
            if not value:
                yield required(path)
            elif value not in choices:
                yield unsupported(path, value, choices)
        if restart_policy == "Never" and restart != "NotRequired":
            yield bad_value(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _restart_problems(container: Json, path: str) -> Iterator[FieldProblem]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None and rules:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if policy is not None and policy not in _RESTART_POLICIES:
        yield unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        where = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action") not in _RESTART_ACTIONS:
            yield unsupported(f"{where}.action", rule.get("action") or "", _RESTART_ACTIONS)
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{where}.exitCodes", "must be specified")
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            yield unsupported(f"{where}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            yield too_many(f"{where}.exitCodes.values", len(codes["values"]), 255)


def _running_problems(container: Json, path: str, pod: PodContext) -> Iterator[FieldProblem]:
    """Lifecycle and probes, which containers have that go on running."""
    if lifecycle := container.get("lifecycle"):
        for event in ("postStart", "preStop"):
            if (handler := lifecycle.get(event)) is not None:
                yield from _handler_problems(handler, f"{path}.lifecycle.{event}", pod.grace_seconds)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            yield from _probe_problems(probe, f"{path}.{name}", name, pod.grace_seconds)


def _probe_problems(probe: Json, path: str, kind: str, grace_seconds: int | None) -> Iterator[FieldProblem]:
    yield from _handler_problems(probe, path, grace_seconds)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        if (probe.get(field) or 0) < 0:
            yield bad_value(f"{path}.{field}", probe[field], "must be greater than or equal to 0")
    patience = probe.get("terminationGracePeriodSeconds")
    if patience is not None and patience <= 0:
        yield bad_value(f"{path}.terminationGracePeriodSeconds", patience, "must be greater than 0")
    if kind == "readinessProbe":
        if patience is not None:
            detail = "must not be set for readinessProbes"
            yield bad_value(f"{path}.terminationGracePeriodSeconds", patience, detail)
    elif (probe.get("successThreshold") or 1) != 1:
        yield bad_value(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_problems(handler: Json, path: str, grace_seconds: int | None) -> Iterator[FieldProblem]:
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    first, *others = given
    for other in others:
        yield forbidden_field(f"{path}.{other}", "may not specify more than 1 handler type")
    action, where = handler[first], f"{path}.{first}"
    match first:
        case "exec":
            if not action.get("command"):
                yield required(f"{where}.command")
        case "httpGet":
            yield from _port_or_name_problems(action.get("port", 0), f"{where}.port")
            if action.get("scheme", "HTTP") not in ("HTTP", "HTTPS"):
                yield unsupported(f"{where}.scheme", action["scheme"], ("HTTP", "HTTPS"))
            for header in action.get("httpHeaders") or ():
                if problem := names.header_name(header.get("name") or ""):
                    yield bad_value(f"{where}.httpHeaders", header.get("name") or "", problem)
        case "tcpSocket" | "grpc":
            yield from _port_or_name_problems(action.get("port", 0), f"{where}.port")
        case _:
            seconds = action.get("seconds") or 0
            if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
                yield bad_value(where, seconds, detail)


def _port_or_name_problems(port: Any, path: str) -> Iterator[FieldProblem]:
    problem = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    if problem:
        yield bad_value(path, port, problem)
