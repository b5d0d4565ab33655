"""Objects and patches of kinds that plugins read, as a person writes them in the version that a server serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.documents.json_values import Json
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.versions.api_versions import body_in_version
from trio_sched.kube_client.versions.served_versions import ServedVersions


def written_as(
    served: ServedVersions, others: Mapping[str, Kind[Any]] = MappingProxyType({})
) -> Callable[[str, Json], tuple[str, Json]]:
    """A function for what `Kubectl.written` is; it asks nobody.

    Where the version is not the one whose shape is used here, kubectl is told it: for a patch it would take the one
    that the server prefers.

    Args:
        served: what the server serves.
        others: kinds that no plugin reads, by the names under which they are known here.
    """
    kinds = {**KINDS, **others}

    def written(name: str, body: Json) -> tuple[str, Json]:
        kind = kinds.get(name)
        chosen = kind if kind is None else served.known(kind)
        if kind is None or chosen is None or chosen.version == kind.version:
            return name.lower(), body
        return f"{chosen.plural}.{chosen.version}.{chosen.group}", body_in_version(kind, chosen, body)

    return written
