"""Rules of pods and of templates of pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from trio_sched.documents.json_values import Json, encode
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.pods.containers import placed_containers
from trio_sched.simulator.pods.pod_resources import aggregated, aggregated_quantities
from trio_sched.simulator.validation.core.annotations import MIRROR, pod_annotation_problems, profile_mismatches
from trio_sched.simulator.validation.core.containers import (
    PodContext,
    choice_problems,
    container_problems,
    ephemeral_container_problems,
    init_container_problems,
)
from trio_sched.simulator.validation.core.pod_scheduling import (
    affinity_problems,
    claim_problems,
    gate_problems,
    spread_problems,
)
from trio_sched.simulator.validation.core.resources import (
    pod_resource_problems,
    requirement_problems,
)
from trio_sched.simulator.validation.core.security import operating_system_problems, pod_security_problems
from trio_sched.simulator.validation.core.taints import toleration_problems
from trio_sched.simulator.validation.core.volumes import volume_problems
from trio_sched.simulator.validation.core.windows import host_process_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    too_long,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import annotation_problems, label_problems
from trio_sched.simulator.validation.meta.selectors import key_problems

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NAMED: Final[Mapping[str, names.Check]] = {
    "serviceAccountName": names.subdomain,
    "nodeName": names.subdomain,
    "hostname": names.dns_label,
    "subdomain": names.dns_label,
    "priorityClassName": names.subdomain,
}
_LONGEST_REMEMBERED: Final = 16 * 1024


def sent_pod_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a pod that is to be created, though one that exists may be so."""
    spec = fields.get("spec") or {}
    if spec.get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if annotations := fields["metadata"].get("annotations"):
        yield from profile_mismatches(annotations, spec, "spec", is_pod=True)


def pod_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new pod whose defaults are filled in."""
    spec, metadata = fields.get("spec") or {}, fields["metadata"]
    if annotations := metadata.get("annotations"):
        yield from pod_annotation_problems(annotations, spec, "metadata.annotations")
        if spec.get("resourceClaims") and MIRROR in annotations:
            yield forbidden_field("", "static pods do not support resource claims")
    yield from _spec_problems(spec, metadata.get("name") or "")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _spec_problems(spec: Json, name: str) -> Iterable[FieldProblem]:
    """What is wrong with the spec of a pod; most pods are copies of few, which are checked once."""
    if not spec.get("volumes"):  # the names of volumes depend on the pod's
        encoded = encode(spec)
        if len(encoded) <= _LONGEST_REMEMBERED:
            return _problems_of(encoded)
    return pod_spec_problems(spec, "spec", name=name, is_pod=True)


@lru_cache(maxsize=1024)
def _problems_of(encoded: bytes) -> tuple[FieldProblem, ...]:
    return tuple(pod_spec_problems(msgspec.json.decode(encoded), "spec", name="", is_pod=True))


def template_problems(template: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a template of pods."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from label_problems(metadata.get("labels") or {}, f"{path}.labels")
    if annotations := metadata.get("annotations"):
        yield from annotation_problems(annotations, f"{path}.annotations")
        yield from pod_annotation_problems(annotations, spec, f"{path}.annotations")
        yield from profile_mismatches(annotations, spec, f"{path}.spec", is_pod=False)
    yield from pod_spec_problems(spec, f"{path}.spec", name="", is_pod=False)
    if spec.get("ephemeralContainers"):
        yield forbidden_field(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_spec_problems(spec: Json, path: str, *, name: str, is_pod: bool) -> Iterator[FieldProblem]:
    """What is wrong with the spec of a pod.

    Args:
        spec: the spec, its defaults filled in.
        path: where it is.
        name: the name of the pod; empty for a template.
        is_pod: whether it is a pod and no template.
    """
    volumes, problems = volume_problems(spec.get("volumes") or [], f"{path}.volumes", name)
    yield from problems
    claims = spec.get("resourceClaims") or []
    yield from claim_problems(claims, f"{path}.resourceClaims")
    pod = PodContext(
        volumes=volumes,
        claims={claim["name"] for claim in claims if claim.get("name")},
        restart_policy=spec.get("restartPolicy") or "Always",
        grace_seconds=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers", True),
        system=(spec.get("os") or {}).get("name") or "",
    )
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    yield from container_problems(containers, f"{path}.containers", pod)
    yield from init_container_problems(first, f"{path}.initContainers", containers, pod)
    ephemeral = spec.get("ephemeralContainers") or []
    yield from ephemeral_container_problems(ephemeral, f"{path}.ephemeralContainers", [*containers, *first], pod)
    if (resources := spec.get("resources")) is not None:
        yield from _pod_level_problems(resources, spec, f"{path}.resources", pod)
    if spec.get("hostNetwork"):
        yield from _host_network_problems(containers, f"{path}.containers", is_pod=is_pod)
    yield from choice_problems(spec, "restartPolicy", _RESTART_POLICIES, path)
    yield from choice_problems(spec, "dnsPolicy", _DNS_POLICIES, path)
    yield from _scheduling_problems(spec, path)
    yield from pod_security_problems(spec.get("securityContext") or {}, spec, f"{path}.securityContext")
    yield from host_process_problems(spec, path)
    yield from _network_problems(spec, path)
    yield from _other_problems(spec, path)


def _scheduling_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    yield from label_problems(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        yield from affinity_problems(affinity, f"{path}.affinity")
    if gates := spec.get("schedulingGates"):
        yield from gate_problems(gates, f"{path}.schedulingGates")
    if constraints := spec.get("topologySpreadConstraints"):
        yield from spread_problems(constraints, f"{path}.topologySpreadConstraints")
    if tolerations := spec.get("tolerations"):
        yield from toleration_problems(tolerations, f"{path}.tolerations")
    policy = spec.get("preemptionPolicy")
    if policy == "":
        yield required(f"{path}.preemptionPolicy")
    elif policy not in (None, "PreemptLowerPriority", "Never"):
        yield unsupported(f"{path}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    if overhead := spec.get("overhead"):
        yield from requirement_problems({"limits": overhead}, f"{path}.overhead", ())
    if reference := spec.get("workloadRef"):
        yield from _workload_problems(reference, f"{path}.workloadRef")
    group = spec.get("schedulingGroup")
    if group is not None:
        where, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName")
        if name is None:
            yield bad_value(where, name, "must specify one of: `podGroupName`")
        elif problem := names.subdomain(name):
            yield bad_value(where, name, problem)


def _workload_problems(reference: Json, path: str) -> Iterator[FieldProblem]:
    rules = (("name", names.subdomain), ("podGroup", names.dns_label), ("podGroupReplicaKey", names.dns_label))
    for name, rule in rules:
        value = reference.get(name) or ""
        if (value or name != "podGroupReplicaKey") and (problem := rule(value)):
            yield bad_value(f"{path}.{name}", value, problem)


def _pod_level_problems(resources: Json, spec: Json, path: str, pod: PodContext) -> Iterator[FieldProblem]:
    if pod.system == "windows":
        yield forbidden_field(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden_field(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from requirement_problems(resources, path, pod.claims, pod_resource_problems)
    requested = aggregated_quantities(spec, "requests")
    for name, quantity in (resources.get("requests") or {}).items():
        total = requested.get(name, "0")
        if parse_nano(total) > parse_nano(quantity):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            yield bad_value(f"{path}.requests[{name}]", str(quantity), detail)
    limited = aggregated(spec, "limits")
    for name, quantity in (resources.get("limits") or {}).items():
        limit = parse_nano(quantity)
        if name.startswith("hugepages-") and limited.get(name, 0) > limit:
            detail = "must be greater than or equal to aggregate container limits"
            yield bad_value(f"{path}.limits[{name}]", str(quantity), detail)
        for index, container in enumerate(spec.get("containers") or ()):
            own = ((container.get("resources") or {}).get("limits") or {}).get(name)
            if own is not None and parse_nano(own) > limit:
                detail = f"must be less than or equal to pod limits of {quantity}"
                yield bad_value(f"{path}.containers[{index}][{name}].limits", str(own), detail)


def _host_network_problems(containers: list[Json], path: str, *, is_pod: bool) -> Iterator[FieldProblem]:
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            on_host, own = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or on_host) and on_host != own:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield bad_value(f"{path}[{index}].ports[{number}].hostPort", on_host, detail)


def _network_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    config, where = spec.get("dnsConfig"), f"{path}.dnsConfig"
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(where, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{where}.nameservers", detail)
    if len(servers) > 3:
        yield bad_value(f"{where}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        if problem := names.ip_address(server):
            yield bad_value(f"{where}.nameservers[{index}]", server, problem)
    searches = (config or {}).get("searches") or []
    if len(searches) > 32:
        yield bad_value(f"{where}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        yield bad_value(f"{where}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != "." and (problem := names.subdomain_with_underscore(search.removesuffix("."))):
            yield bad_value(f"{where}.searches[{index}]", search.removesuffix("."), problem)
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield required(f"{where}.options[{index}]", "must not be empty")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        if problem := names.ip_address(alias.get("ip") or ""):
            yield bad_value(f"{path}.hostAliases[{index}].ip", alias.get("ip") or "", problem)
        for number, host in enumerate(alias.get("hostnames") or ()):
            if problem := names.subdomain(host):
                yield bad_value(f"{path}.hostAliases[{index}].hostnames[{number}]", host, problem)


def _other_problems(spec: Json, path: str) -> Iterator[FieldProblem]:
    for field, check in _NAMED.items():
        if spec.get(field) and (problem := check(spec[field])):
            yield bad_value(f"{path}.{field}", spec[field], problem)
    runtime = spec.get("runtimeClassName")
    if runtime is not None and (problem := names.subdomain(runtime)):
        yield bad_value(f"{path}.runtimeClassName", runtime, problem)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 1 << 31:
        detail = f"must be between 1 and {(1 << 31) - 1}, inclusive"
        yield bad_value(f"{path}.activeDeadlineSeconds", deadline, detail)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from key_problems(gate.get("conditionType"), f"{path}.readinessGates[{index}].conditionType")
    if spec.get("hostUsers") is False:
        for field, shown in (("hostPID", "HostPID"), ("hostIPC", "HostIPC"), ("hostNetwork", "hostNetwork")):
            if spec.get(field):
                yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")
        for container, where in placed_containers(spec, path):
            if container.get("volumeDevices"):
                yield forbidden_field(f"{where}.volumeDevices", "when `hostUsers` is false")
    override = spec.get("hostnameOverride")
    if override is not None:
        where = f"{path}.hostnameOverride"
        for field in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(field):
                yield forbidden_field(where, f"may not be specified when {field} is true")
        if len(override) > 64:
            yield too_long(where, 64)
        if problem := names.subdomain(override):
            yield bad_value(where, override, problem)
    if spec.get("os") is not None:
        yield from operating_system_problems(spec, path)
