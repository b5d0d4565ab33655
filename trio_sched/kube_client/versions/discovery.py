"""Asks an API server which versions of the groups in question it serves, and which version of Kubernetes it is.

Nothing here is an error of its own: what is not known is None, and whoever wants a kind tries one version after the
other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import trio
from msgspec import Struct, field

from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.versions.api_versions import GROUPS, VERSIONED
from trio_sched.verbosity import V2

log = logging.getLogger(__name__)

DISCOVERY_SECONDS: Final = 5.0
"""A server that has not said by then what it serves is asked for the kinds themselves."""
_AGGREGATED: Final = (
    b"Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    b"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json\r\n"
)

Served = Mapping[str, frozenset[tuple[str, str]]]
"""Group → the pairs of version and plural that are served. Groups of which nothing is known are missing."""


class _Resource(Struct, frozen=True):
    resource: str = ""


class _Version(Struct, frozen=True):
    version: str = ""
    freshness: str = ""
    resources: tuple[_Resource, ...] | None = None


class _Named(Struct, frozen=True):
    name: str = ""


class _AggregatedGroup(Struct, frozen=True):
    metadata: _Named = field(default_factory=_Named)
    versions: tuple[_Version, ...] | None = None


class _Group(Struct, frozen=True):
    name: str = ""
    versions: tuple[_Version, ...] | None = None


class _Groups(Struct, frozen=True):
    """An APIGroupDiscoveryList (*items*), or an APIGroupList (*groups*)."""

    kind: str = ""
    items: tuple[_AggregatedGroup, ...] | None = None
    groups: tuple[_Group, ...] | None = None


class _ResourceList(Struct, frozen=True):
    kind: str = ""
    resources: tuple[_Named, ...] | None = None


class _ServerVersion(Struct, frozen=True):
    major: str = ""
    minor: str = ""


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


async def discover(client: KubeClient) -> Served | None:
    """What is served of the groups in `GROUPS`; None if the server does not say.

    Waits no longer than `DISCOVERY_SECONDS`.
    """
    try:
        with trio.fail_after(DISCOVERY_SECONDS):
            answer = await _get(client, "/apis", _Groups, _AGGREGATED)
            if answer.kind == "APIGroupDiscoveryList" and answer.items is not None:
                return _aggregated(answer.items)
            if answer.kind == "APIGroupList" and answer.groups is not None:
                return await _one_by_one(client, answer.groups)
            problem = f"it is of the kind {answer.kind!r}"
    except trio.TooSlowError:
        problem = f"no response within {DISCOVERY_SECONDS:g} s"
    except KubeClientError as error:
        problem = str(error)
    except _UNREADABLE as error:
        problem = f"it cannot be read: {error}"
    log.log(V2, "The API server does not say which versions it serves, so they are tried one by one: %s", problem)
    return None


async def server_version(client: KubeClient) -> tuple[int, int] | None:
    """The version of Kubernetes that the API server has, major and minor; None if it does not say.

    Waits no longer than `DISCOVERY_SECONDS`.
    """
    try:
        with trio.fail_after(DISCOVERY_SECONDS):
            answer = await _get(client, "/version", _ServerVersion)
    except (trio.TooSlowError, KubeClientError, *_UNREADABLE):
        return None
    numbers = [re.match(r"[0-9]{1,6}", text, re.ASCII) for text in (answer.major, answer.minor)]  # "31+" in some clouds
    major, minor = numbers
    return None if major is None or minor is None else (int(major[0]), int(minor[0]))


def _aggregated(groups: tuple[_AggregatedGroup, ...]) -> Served:
    found: dict[str, frozenset[tuple[str, str]]] = dict.fromkeys(GROUPS, frozenset())
    for group in groups:
        name = group.metadata.name
        if name not in GROUPS:
            continue
        versions = group.versions or ()
        if any(one.freshness not in ("Current", "") for one in versions):
            found.pop(name, None)  # what the server remembers of a group that it cannot reach
            continue
        found[name] = frozenset((one.version, each.resource) for one in versions for each in one.resources or ())
    return found


async def _one_by_one(client: KubeClient, groups: tuple[_Group, ...]) -> Served:
    """As servers before 1.27 are asked, and those behind proxies that drop the header."""
    found: dict[str, frozenset[tuple[str, str]]] = dict.fromkeys(GROUPS, frozenset())
    understood = {(group, one.name) for (group, _), row in VERSIONED.items() for one in row.versions}
    for group in groups:
        if group.name not in GROUPS:
            continue
        served: set[tuple[str, str]] = set()
        try:
            for version in group.versions or ():
                if (group.name, version.version) in understood:
                    served |= await _resources(client, group.name, version.version)
        except (KubeClientError, *_UNREADABLE):
            found.pop(group.name, None)
        else:
            found[group.name] = frozenset(served)
    return found


async def _resources(client: KubeClient, group: str, version: str) -> set[tuple[str, str]]:
    try:
        answer = await _get(client, f"/apis/{group}/{version}", _ResourceList)
    except NotFound:  # it has gone since the groups were listed
        return set()
    if answer.kind != "APIResourceList":
        raise msgspec.ValidationError(f"a {answer.kind!r}")
    return {(version, one.name) for one in answer.resources or ()}


async def _get(client: KubeClient, path: str, type_: type[Any], headers: bytes = b"") -> Any:
    return msgspec.json.decode(await client.call(b"GET", path.encode(), headers=headers), type=type_)
