"""Pod templates as revisions: the hashes that tell them apart, and the history of ControllerRevisions."""

from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.simulator.registry.defaults import template_defaults
from trio_sched.simulator.storage.object_store import copied

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619


def normal_template(template: Json, *without_labels: str) -> Json:
    """A copy of a pod template with all defaults and without empty parts of its metadata, for comparisons."""
    copy = copied({"spec": {"template": template}})
    template_defaults(copy)
    normal: Json = copy["spec"]["template"]
    metadata = {name: value for name, value in (normal.pop("metadata", None) or {}).items() if value}
    labels = {name: value for name, value in metadata.pop("labels", {}).items() if name not in without_labels}
    metadata.pop("creationTimestamp", None)
    if labels:
        metadata["labels"] = labels
    normal["metadata"] = metadata
    return normal


def template_hash(template: Json, collisions: int = 0) -> str:
    """A short text that stands for a pod template, written as Kubernetes writes its own."""
    data = msgspec.json.encode(normal_template(template), order="deterministic")
    if collisions:
        data += str(collisions).encode()
    digest = _FNV_OFFSET
    for byte in data:
        digest = ((digest ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(digest))
