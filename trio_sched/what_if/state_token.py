"""Says of which state of a cluster an answer holds: a digest per kind of objects, without what changes all the time.

Resource versions would not do: that of a node changes with every status that its kubelet reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulator.manifests.manifests import Manifest

_KEPT_METADATA: Final = ("namespace", "name", "uid", "labels", "annotations", "ownerReferences", "deletionTimestamp")
_KEPT_STATUS: Final = {
    "Node": ("allocatable", "capacity", "conditions", "features"),
    "Pod": ("phase", "nominatedNodeName", "conditions"),
}
"""Kinds of whose status only this counts; of others all of it does."""
_DIGITS: Final = 10
_encode = msgspec.json.Encoder(order="sorted").encode


class StateChanged(TrioSchedError):
    """The cluster is not as it was when the answer was given."""


class BadToken(TrioSchedError):
    """A text is no token of an answer."""


def state_token(manifests: Iterable[Manifest]) -> str:
    """The token of a cluster with these objects: ``Node=0123456789,Pod=…``, the same in whatever order they come."""
    sums: dict[str, int] = defaultdict(int)
    for manifest in manifests:
        fields = manifest.fields
        digest = sha256(_encode(_what_counts(fields))).digest()
        sums[str(fields.get("kind"))] += int.from_bytes(digest, "big")
    return ",".join(f"{kind}={total % (1 << 4 * _DIGITS):0{_DIGITS}x}" for kind, total in sorted(sums.items()))


def check_unchanged(token: str, now: str) -> None:
    """Refuse a cluster whose token is *now* if the answer with *token* does not hold for it.

    Raises:
        BadToken: *token* is none.
        StateChanged: the cluster has changed.
    """
    before, after = _parts(token), _parts(now)
    changed = sorted(kind for kind in before.keys() | after.keys() if before.get(kind) != after.get(kind))
    if changed:
        raise StateChanged(f"the cluster has changed since: {some_names(changed, 10)}")


def _parts(token: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in token.split(",") if token else ():
        kind, equals, digest = part.partition("=")
        if not (kind and equals and digest) or kind in parts:
            raise BadToken("this is no token; give the text that an answer has under 'token'")
        parts[kind] = digest
    return parts


def _what_counts(fields: Json) -> Json:
    kind = fields.get("kind")
    metadata, status = fields.get("metadata"), fields.get("status")
    kept: Json = {name: value for name, value in fields.items() if name not in ("metadata", "status")}
    if isinstance(metadata, dict):
        kept["metadata"] = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    if isinstance(status, dict):
        names = _KEPT_STATUS.get(str(kind), tuple(status))
        kept["status"] = {name: _without_times(status[name]) for name in names if name in status}
    return kept


def _without_times(value: Any) -> Any:
    """Conditions without the moments at which they were reported."""
    if not isinstance(value, list):
        return value
    return [
        {name: part for name, part in one.items() if not name.endswith("Time")} if isinstance(one, dict) else one
        for one in value
    ]
