"""Converts the general settings of a legacy configuration: the connection, the election, times and numbers."""

from collections.abc import Mapping
from typing import Any, Final

from trio_sched.config.legacy.addresses import INSECURE_PORT_GONE, drop_address
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.retired_plugins import VERSIONS
from trio_sched.documents.tree import Number
from trio_sched.go.text import json_float

_UNCHANGED: Final = (
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "enableProfiling",
    "enableContentionProfiling",
    "delayCacheUntilActive",
    "clientConnection",
    "extenders",
)
_OLD_LOCKS: Final = frozenset({"endpoints", "configmaps", "endpointsleases", "configmapsleases"})


def general_settings(
    given: Mapping[str, Any], values: Mapping[str, Any], version: str, changes: Changes
) -> dict[str, Any]:
    """The top-level fields in v1, without profiles.

    Args:
        given: the decoded fields of the document.
        values: the same as they were written.
        version: which legacy version it is.
        changes: where the changes are noted.
    """
    fields = {name: values[name] for name in _UNCHANGED if name in values}
    if election := _leader_election(given, values, changes):
        fields["leaderElection"] = election
    if connection := _flat_connection(given, changes):
        fields["clientConnection"] = {**connection, **fields.get("clientConnection", {})}
    strict = VERSIONS.index(version) >= VERSIONS.index("v1beta2")
    for name in ("healthzBindAddress", "metricsBindAddress"):
        drop_address(name, given.get(name, ""), changes, strict=strict)
    if given.get("port"):
        drop_address("port", f":{given['port']}", changes, strict=False)
    if given.get("address"):
        changes.note("address", INSECURE_PORT_GONE)
    if "failureDomains" in given:
        changes.note("failureDomains", "means nothing any more: every topologyKey must be given")
    return fields


def _leader_election(given: Mapping[str, Any], values: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    election = dict(values.get("leaderElection") or {})
    lock = election.get("resourceLock")
    if lock in _OLD_LOCKS:
        changes.note("leaderElection.resourceLock", f"now leases, not {lock}")
        del election["resourceLock"]
    for old, new in (("lockObjectNamespace", "resourceNamespace"), ("lockObjectName", "resourceName")):
        name = election.pop(old, "") or given.get(old, "")
        if not name:
            continue
        path = old if old in given else f"leaderElection.{old}"
        if election.get(new, name) not in ("", name):
            changes.refuse(path, f"{name!r} is not what leaderElection.{new} says; leave one of the two out")
        election[new] = name
        changes.note(path, f"now leaderElection.{new}")
    return election


def _flat_connection(given: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """What the oldest version said about the connection at its top."""
    connection: dict[str, Any] = {}
    for old, new in (("contentType", "contentType"), ("kubeAPIQPS", "qps"), ("kubeAPIBurst", "burst")):
        if old in given:
            value = given[old]
            connection[new] = Number(json_float(value, bits=32)) if isinstance(value, float) else value
            changes.note(old, f"now clientConnection.{new}")
    return connection
