"""What a cluster has of what a configuration needs: which kinds it serves, in which version, and which rights.

Nothing is written. Kinds are looked for as the daemon does it, rights are those of the roles that `permissions` makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import trio
from attrs import frozen

from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.permissions import Rule, cluster_rules, election_rules
from trio_sched.daemon.watching.watched_kinds import WATCHED_ANYWAY, kind_of
from trio_sched.daemon.watching.watches import ROLES
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.errors import Forbidden, NotFound
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.versions.api_versions import versioned
from trio_sched.kube_client.versions.discovery import server_version
from trio_sched.kube_client.versions.served_versions import NotServed, ServedVersions

_AT_ONCE: Final = 8
"""Requests at the same time."""
_REVIEWS: Final = b"/apis/authorization.k8s.io/v1/"
_READ: Final = frozenset({"get", "list", "watch"})
_DEFINE: Final = "install its CustomResourceDefinition"
_NOTHING_KNOWN: Final = "nothing is known of them, as if there were none"
_NEEDED: Final = frozenset({("", "nodes"), ("", "pods")})
_COSTS: Final[Mapping[tuple[str, str], str]] = {
    ("", "pods"): "no pod is preempted",
    ("", "pods/binding"): "no pod is bound",
    ("", "pods/status"): "pods do not say why they are pending, and none is preempted for",
    ("", "events"): "no events are recorded",
    ("scheduling.k8s.io", "workloads"): "on an API server of 1.35 pods that name a workload stay pending",
    ("events.k8s.io", "events"): "no events are recorded",
    ("coordination.k8s.io", "leases"): "no leader is elected, so nothing is scheduled",
    ("authentication.k8s.io", "tokenreviews"): "requests with a token to the scheduler's own endpoints are refused",
    ("authorization.k8s.io", "subjectaccessreviews"): "requests to the scheduler's own endpoints are refused",
}

State = Literal["served", "missing", "forbidden"]


@frozen(kw_only=True)
class KindState:
    """A kind that is watched.

    Attributes:
        resource: ``podgroups.scheduling.k8s.io``.
        version: the one that is used; empty: none is served.
        cost: what is different without it; empty: it can be watched.
        mend: what helps.
    """

    resource: str
    state: State
    version: str
    cost: str = ""
    mend: str = ""


@frozen(kw_only=True)
class LackingRight:
    """A right that lacks, besides that to read a kind: the verbs, and the resource as roles name it."""

    resource: str
    verbs: tuple[str, ...]
    cost: str
    mend: str = ROLES


@frozen
class ClusterFindings:
    """What a cluster has.

    Attributes:
        server: its version, ``1.35``; empty: it does not say.
        kinds: all that are watched.
        lacking: the rights that lack besides.
    """

    server: str
    kinds: tuple[KindState, ...]
    lacking: tuple[LackingRight, ...]


async def check_cluster(client: KubeClient, loaded: LoadedProfiles, user: str = "") -> ClusterFindings:
    """Ask the API server of *client*.

    Args:
        client: with the credentials of the scheduler, or of whoever may ask for the rights of *user*.
        loaded: the plugins of the configuration.
        user: whose rights are asked for; empty: those of the credentials.

    Raises:
        KubeClientError: the server cannot be reached, or refuses to say which rights there are.
    """
    election = loaded.settings.config.leader_election
    rules = [(rule, "") for rule in cluster_rules(loaded)]
    if election.leader_elect:
        sharding = loaded.settings.config.sharding
        found_rules = election_rules(election.resource_name, 0 if sharding is None else sharding.shards)
        rules += [(rule, election.resource_namespace) for rule in found_rules]
    found = await server_version(client)
    versions = await _versions(client, loaded)
    lacking = await _lacking(client, rules, user)
    kinds = tuple(_kind_state(kind, version, lacking) for kind, version in versions)
    return ClusterFindings(
        "" if found is None else ".".join(map(str, found)),
        kinds,
        tuple(_other_rights(lacking, {(kind.group, kind.plural) for kind, _version in versions})),
    )


_Lacking = Mapping[tuple[str, str], Sequence[str]]
"""Group and resource → the verbs that are not allowed."""


async def _versions(client: KubeClient, loaded: LoadedProfiles) -> list[tuple[Kind[Any], str | NotFound]]:
    """Every kind that is watched, with the version in which it is served, or how it is not."""
    found = (kind_of(resource) for resource in loaded.wanted_kinds)
    kinds = [*WATCHED_ANYWAY.values(), *(one[1] for one in found if one is not None)]
    served, limit = ServedVersions(client), trio.CapacityLimiter(_AT_ONCE)
    versions: dict[Kind[Any], str | NotFound] = {}

    async def look(kind: Kind[Any]) -> None:
        async def listed(chosen: Kind[Any]) -> str:
            try:
                await client.call(b"GET", f"{chosen.collection()}?limit=1".encode())
            except Forbidden:  # also the answer to who may not read what is not served
                row = versioned(kind)
                if row is not None and served.is_said_missing(kind):
                    raise NotServed(kind, row) from None
            return chosen.version

        async with limit:
            try:
                versions[kind] = await served.use(kind, listed)
            except NotFound as error:
                versions[kind] = error

    async with trio.open_nursery() as nursery:
        for kind in kinds:
            nursery.start_soon(look, kind)
    return sorted(versions.items(), key=lambda one: (one[0].group, one[0].plural))


async def _lacking(client: KubeClient, rules: Sequence[tuple[Rule, str]], user: str) -> _Lacking:
    lacking: dict[tuple[str, str], list[str]] = {}
    limit = trio.CapacityLimiter(_AT_ONCE)

    async def look(group: str, resource: str, verb: str, namespace: str, name: str) -> None:
        plural, _, subresource = resource.partition("/")
        attributes = {"group": group, "resource": plural, "subresource": subresource, "verb": verb}
        attributes |= {"namespace": namespace, "name": name}
        async with limit:
            if not await _is_allowed(client, attributes, user):
                lacking.setdefault((group, resource), []).append(verb)

    async with trio.open_nursery() as nursery:
        for rule, namespace in rules:
            for resource in rule.resources:
                for verb in rule.verbs:
                    for name in rule.names or ("",):
                        nursery.start_soon(look, rule.group, resource, verb, namespace, name)
    return {resource: sorted(verbs) for resource, verbs in sorted(lacking.items())}


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = msgspec.field(default_factory=_Status)


async def _is_allowed(client: KubeClient, attributes: Mapping[str, str], user: str) -> bool:
    kind = "SubjectAccessReview" if user else "SelfSubjectAccessReview"
    spec: dict[str, Any] = {"resourceAttributes": attributes}
    if user:
        spec |= {"user": user, "groups": _groups_of(user)}
    body = msgspec.json.encode({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
    answer = await client.call(b"POST", _REVIEWS + kind.lower().encode() + b"s", headers=JSON, body=body)
    return msgspec.json.decode(answer, type=_Review).status.allowed


def _groups_of(user: str) -> list[str]:
    """The groups that the API server gives *user*: all it gives to service accounts."""
    groups, parts = ["system:authenticated"], user.split(":")
    if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]:
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"]
    return groups


def _kind_state(kind: Kind[Any], version: str | NotFound, lacking: _Lacking) -> KindState:
    resource = _name(kind.group, kind.plural)
    row = versioned(kind)
    is_needed = (kind.group, kind.plural) in _NEEDED
    cost = "nothing is scheduled" if is_needed else _NOTHING_KNOWN if row is None else row.cost
    if isinstance(version, NotServed) and row is not None:
        return KindState(resource=resource, state="missing", version="", cost=cost, mend=row.fix)
    if isinstance(version, NotFound):
        return KindState(resource=resource, state="missing", version="", cost=cost, mend=_DEFINE)
    if _READ & set(lacking.get((kind.group, kind.plural), ())):
        return KindState(resource=resource, state="forbidden", version=version, cost=cost, mend=ROLES)
    return KindState(resource=resource, state="served", version=version)


def _other_rights(lacking: _Lacking, watched: set[tuple[str, str]]) -> Iterator[LackingRight]:
    for (group, resource), verbs in lacking.items():
        left = tuple(verb for verb in verbs if (group, resource) not in watched or verb not in _READ)
        if left:
            cost = _COSTS.get((group, resource), "what is written there fails")
            yield LackingRight(resource=_name(group, resource), verbs=left, cost=cost)


def _name(group: str, resource: str) -> str:
    plural, slash, subresource = resource.partition("/")
    return f"{plural}.{group}".rstrip(".") + slash + subresource
