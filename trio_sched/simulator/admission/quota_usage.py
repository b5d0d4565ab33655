"""What an object uses of a ResourceQuota. Source: ``pkg/quota/v1/evaluator/core`` of Kubernetes."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.simulator.pods.containers import containers_of
from trio_sched.simulator.pods.pod_defaults import quality_of_service
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.pods.pod_resources import pod_total
from trio_sched.simulator.storage.resource_types import ResourceType

_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = ("services", "configmaps", "secrets", "replicationcontrollers", "resourcequotas")
_MUST_BE_SET: Final = {
    f"{prefix}{name}": (kind, name)
    for prefix, kind in (("", "requests"), ("requests.", "requests"), ("limits.", "limits"))
    for name in ("cpu", "memory")
}
_CLASS: Final = ".storageclass.storage.k8s.io/"


def usage_of(resource: ResourceType, fields: Json) -> dict[str, int]:
    """What an object uses, in nano units by the names of quotas."""
    used = {f"count/{resource.qualified}": NANO}
    if resource.collection == "pods":
        if not is_finished(fields):
            used |= _of_pod(fields["spec"])
    elif resource.collection == "persistentvolumeclaims":
        used |= _of_claim(fields["spec"])
    elif resource.collection in _COUNTED:
        used[resource.plural] = NANO
        if resource.collection == "services":
            used |= _of_service(fields.get("spec") or {})
    return used


def uses_other(resource: ResourceType, old: Json, new: Json) -> bool:
    """Whether a change of an object is one that quotas look at."""
    if old.get("spec") is new.get("spec"):
        return False
    match resource.collection:
        case "pods":
            deadlines = [one["spec"].get("activeDeadlineSeconds") for one in (old, new)]
            is_in_other_scope = (deadlines[0] is None) is not (deadlines[1] is None)
            return is_in_other_scope or usage_of(resource, old) != usage_of(resource, new)
        case "persistentvolumeclaims" | "services":
            return usage_of(resource, old) != usage_of(resource, new)
    return False


def _of_pod(spec: Json) -> dict[str, int]:
    requests, limits, used = pod_total(spec, "requests"), pod_total(spec, "limits"), {"pods": NANO}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = amount
        if name in _COMPUTE or name.startswith("hugepages-") or "/" in name:
            used[f"requests.{name}"] = amount
    used |= {f"limits.{name}": amount for name, amount in limits.items() if name in _COMPUTE}
    return used


def _of_claim(spec: Json) -> dict[str, int]:
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    used = {"persistentvolumeclaims": NANO}
    if requested is not None:
        used["requests.storage"] = parse_nano(requested)
    if spec.get("storageClassName"):
        used |= {f"{spec['storageClassName']}{_CLASS}{name}": amount for name, amount in dict(used).items()}
    return used


def _of_service(spec: Json) -> dict[str, int]:
    ports = len(spec.get("ports") or ())
    balances = spec.get("type") == "LoadBalancer"
    has_ports = spec.get("type") == "NodePort" or (balances and spec.get("allocateLoadBalancerNodePorts", True))
    return {"services.loadbalancers": NANO * balances, "services.nodeports": NANO * ports * has_ports}


def missing(hard: Json, resource: ResourceType, fields: Json) -> str | None:
    """What every container has to set because *hard* limits it, and does not; None if nothing is missing."""
    if resource.collection != "pods" or (fields["spec"].get("resources") or {}):
        return None
    found = {}
    for limited, (kind, name) in sorted(_MUST_BE_SET.items()):
        if limited in hard:
            without = [
                str(one.get("name"))
                for one in containers_of(fields["spec"])
                if name not in ((one.get("resources") or {}).get(kind) or {})
            ]
            if without:
                found[limited] = ",".join(sorted(without))
    return "must specify " + "; ".join(f"{name} for: {who}" for name, who in found.items()) if found else None


def is_in_scope(quota: Json, resource: ResourceType, fields: Json) -> bool:
    """Whether a quota counts an object; scopes are about pods alone."""
    spec = quota["spec"]
    rules = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    rules += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not rules or (resource.collection == "pods" and all(_fits(rule, fields["spec"]) for rule in rules))


def _fits(rule: Json, spec: Json) -> bool:
    match rule.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            return _class_fits(rule, spec.get("priorityClassName") or "")
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(spec.get("affinity") or {})
    return False


def _class_fits(rule: Json, name: str) -> bool:
    values = rule.get("values") or ()
    match rule.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _crosses_namespaces(affinity: Json) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms = list(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [one.get("podAffinityTerm") or {} for one in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
