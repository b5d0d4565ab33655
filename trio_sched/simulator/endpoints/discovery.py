"""Discovery: the groups, versions and resources that are served, and the server's version."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.reviews import REVIEW_TYPES, ReviewType
from trio_sched.simulator.endpoints.subresources.table import SUBRESOURCES
from trio_sched.simulator.storage.kubernetes_versions import git_version
from trio_sched.simulator.storage.resource_types import ALL_VERBS, ResourceType, TypeRegistry

_EMULATION_SINCE: Final = 33
_HEALTH_CHECKS = ("ping", "log", "etcd")


def server_version(minor: int) -> Json:
    """The answer to ``/version`` of a server of the *minor* version."""
    emulation = {
        "emulationMajor": "1",
        "emulationMinor": f"{minor}",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": f"{minor - 1}",
    }
    return {
        "major": "1",
        "minor": f"{minor}",
        **(emulation if minor >= _EMULATION_SINCE else {}),
        "gitVersion": git_version(minor),
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26.0",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def health(path: str, *, verbose: bool) -> bytes | None:
    """The answer to ``/livez``, ``/readyz/ping`` and the like; ``None`` if *path* is no such path."""
    _, page, *check = path.split("/")
    if page not in ("healthz", "livez", "readyz") or (check and (len(check) > 1 or check[0] not in _HEALTH_CHECKS)):
        return None
    if check or not verbose:
        return b"ok"
    return "".join([*(f"[+]{one} ok\n" for one in _HEALTH_CHECKS), f"{page} check passed\n"]).encode()


def api_versions() -> Json:
    """The answer to ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "localhost"}],
    }


def api_groups(types: TypeRegistry) -> Json:
    """The answer to ``/apis``."""
    groups = [_group(name, list(versions)) for name, versions in _all_groups(types).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(types: TypeRegistry, name: str) -> Json | None:
    """The answer to ``/apis/<group>``; ``None`` if the group is not served."""
    versions = _all_groups(types).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(versions))} if versions else None


def _group(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _all_groups(types: TypeRegistry) -> dict[str, dict[str, tuple[list[ResourceType], list[ReviewType]]]]:
    found: dict[str, dict[str, tuple[list[ResourceType], list[ReviewType]]]] = {}
    for group, versions in types.groups().items():
        found[group] = {version: (resources, []) for version, resources in versions.items()}
    for review in REVIEW_TYPES:
        found.setdefault(review.group, {}).setdefault(review.version, ([], []))[1].append(review)
    return found


def resource_list(types: TypeRegistry, group: str, version: str) -> Json | None:
    """The answer to ``/api/v1`` or ``/apis/<group>/<version>``; ``None`` if it is not served."""
    known = _all_groups(types).get(group, {}).get(version)
    if known is None:
        return None
    resources: list[Json] = []
    for resource in known[0]:
        entry: Json = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _verbs(resource),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        resources.append(entry)
        for name in resource.subresources:
            subresource = SUBRESOURCES[name]
            sub_group, sub_version, kind = subresource.kind_of(resource)
            part: Json = {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": subresource.discovery_verbs,
            }
            if (sub_group, sub_version) != (group, version):
                part |= {"group": sub_group, "version": sub_version}
            resources.append(part)
    for review in known[1]:
        entry = {
            "name": review.plural,
            "singularName": review.kind.lower(),
            "namespaced": review.namespaced,
            "kind": review.kind,
            "verbs": ["create"],
        }
        resources.append(entry)
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def aggregated(types: TypeRegistry, *, core: bool) -> Json:
    """Everything at once: the core group for ``/api``, all the others for ``/apis``."""
    items = []
    for group, versions in _all_groups(types).items():
        if (group == "") is not core:
            continue
        listed = []
        for version, (resources, reviews) in versions.items():
            entries = [_aggregated_resource(resource) for resource in resources]
            entries += [_aggregated_review(review) for review in reviews]
            listed.append({"version": version, "resources": entries, "freshness": "Current"})
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _verbs(resource: ResourceType) -> list[str]:
    return ["create"] if resource.plural == "bindings" else list(ALL_VERBS)


def _aggregated_resource(resource: ResourceType) -> Json:
    entry: Json = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    parts = []
    for name in resource.subresources:
        subresource = SUBRESOURCES[name]
        group, version, kind = subresource.kind_of(resource)
        response = {"group": group, "version": version, "kind": kind}
        parts.append({"subresource": name, "responseKind": response, "verbs": subresource.discovery_verbs})
    if parts:
        entry["subresources"] = parts
    return entry


def _aggregated_review(review: ReviewType) -> Json:
    return {
        "resource": review.plural,
        "responseKind": {"group": review.group, "version": review.version, "kind": review.kind},
        "scope": "Namespaced" if review.namespaced else "Cluster",
        "singularResource": review.kind.lower(),
        "verbs": ["create"],
    }
