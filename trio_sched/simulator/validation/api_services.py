"""Rules of APIServices."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required
from trio_sched.simulator.validation.meta.shapes import Json


def api_service_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with an APIService."""
    spec, name = fields.get("spec") or {}, fields["metadata"].get("name") or ""
    group, version, service = spec.get("group") or "", spec.get("version") or "", spec.get("service")
    if name != f"{version}.{group}":
        yield bad_value("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{version}.{group}"')
    if not group and version != "v1":
        yield required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    elif group and (problem := names.subdomain(group)):
        yield bad_value("spec.group", group, problem)
    if problem := names.old_dns_label(version):
        yield bad_value("spec.version", version, problem)
    for field, limit in (("groupPriorityMinimum", 20_000), ("versionPriority", 1000)):
        number = spec.get(field) or 0
        if not 0 < number <= limit:
            yield bad_value(f"spec.{field}", number, f"must be positive and less than {limit}")
    is_insecure, authority = spec.get("insecureSkipTLSVerify"), spec.get("caBundle")
    if service is None:
        for field in ("caBundle", "insecureSkipTLSVerify"):
            if spec.get(field):
                yield bad_value(f"spec.{field}", spec[field], f"local APIServices may not have {field}")
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield required(f"spec.service.{field}")
    if problem := names.port_number(service.get("port", 443)):
        yield bad_value("spec.service.port", service.get("port"), f"port is not valid: {problem}")
    if is_insecure and authority:
        yield bad_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")
