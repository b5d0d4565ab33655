"""What the scheduler has to be allowed, from what its plugins read and write: the rules of its roles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.watching.watched_kinds import WATCHED_ANYWAY, kind_of
from trio_sched.engine.sharding.ownership import shard_lease
from trio_sched.kube_client.kinds import Kind
from trio_sched.objects.pod_groups.workload_groups import PLURAL as WORKLOADS
from trio_sched.plugin_api.custom_resources import Watched

_READ = ("get", "list", "watch")


@frozen
class Rule:
    """A PolicyRule of RBAC."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The only objects that it allows; none: all."""

    def as_manifest(self) -> dict[str, Any]:
        """As in a Role or ClusterRole."""
        names = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), **names, "verbs": list(self.verbs)}


def cluster_rules(loaded: LoadedProfiles, *, read_only: bool = False) -> list[Rule]:
    """For the ClusterRole: pods and nodes, events, authentication of requests, and what the plugins read and write.

    Args:
        loaded: the plugins of the configuration.
        read_only: for a shadow, which writes nothing. Reviews it creates all the same: nothing is stored of them.
    """
    allowed: dict[tuple[str, str], set[str]] = {}

    def allow(group: str, resource: str, verbs: Iterable[str]) -> None:
        allowed.setdefault((group, resource), set()).update(verbs)

    allow("", "nodes", _READ)
    allow("", "pods", _READ)
    allow("authentication.k8s.io", "tokenreviews", ("create",))
    allow("authorization.k8s.io", "subjectaccessreviews", ("create",))
    for resource in loaded.wanted_kinds:
        found = kind_of(resource)
        if found is not None:
            allow(found[1].group, found[1].plural, _READ)
            if found[0] == "PodGroup":
                allow(found[1].group, WORKLOADS, _READ)  # in which 1.35 has them
    if read_only:
        return _merged(allowed)
    allow("", "pods/binding", ("create",))
    allow("", "pods/status", ("patch",))
    for group in ("", "events.k8s.io"):
        allow(group, "events", ("create", "patch"))
    for written, subresource, verbs in _writes(loaded):
        allow(written.group, f"{written.plural}/{subresource}".rstrip("/"), verbs)
    if loaded.settings.gates.features.generic_workload:
        allow("scheduling.k8s.io", "podgroups/status", ("patch",))
    if loaded.settings.gates.features.gang_scheduling:
        allow("", "pods", ("delete",))  # of gangs that stay incomplete
    return _merged(allowed)


def union_of(rules: Iterable[Rule]) -> list[Rule]:
    """What all *rules* of a ClusterRole allow together."""
    allowed: dict[tuple[str, str], set[str]] = {}
    for rule in rules:
        for resource in rule.resources:
            allowed.setdefault((rule.group, resource), set()).update(rule.verbs)
    return _merged(allowed)


def election_rules(lease: str, shards: int = 0) -> list[Rule]:
    """For the Role in the namespace of the *lease*; with *shards* there is one more for each of them."""
    if not shards:
        return [
            Rule("coordination.k8s.io", ("leases",), ("create",)),
            Rule("coordination.k8s.io", ("leases",), ("get", "list", "update", "watch"), (lease,)),
        ]
    names = (lease, *(shard_lease(lease, shard, shards) for shard in range(shards)))
    return [
        Rule("coordination.k8s.io", ("leases",), ("create", "list")),  # they are listed together, at one moment
        Rule("coordination.k8s.io", ("leases",), ("get", "update", "watch"), names),
    ]


def _writes(loaded: LoadedProfiles) -> Iterator[tuple[Kind[Any], str, Collection[str]]]:
    """What plugins say that they write: the kind, the subresource or "", the verbs."""
    for profile in loaded.prepared.profiles.values():
        for plugin in profile.plugins.values():
            writes: Mapping[Watched, Collection[str]] = getattr(plugin, "writes", None) or {}
            for written, verbs in writes.items():
                name, _slash, subresource = str(written).partition("/")
                if name in WATCHED_ANYWAY:
                    yield WATCHED_ANYWAY[name], subresource, verbs
                elif (found := kind_of(name)) is not None:
                    yield found[1], subresource, verbs


def _merged(allowed: Mapping[tuple[str, str], Iterable[str]]) -> list[Rule]:
    """One rule for all resources of a group with the same verbs, in a fixed order."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), verbs in sorted(allowed.items()):
        together.setdefault((group, tuple(sorted(verbs))), []).append(resource)
    return [Rule(group, tuple(resources), verbs) for (group, verbs), resources in sorted(together.items())]
