"""Pods and nodes that keep the JSON they were decoded from, because extenders are sent whole objects.

The other classes have only the fields that a scheduler reads. The JSON takes several KB an object, so it is kept only
where an extender is configured that needs it.
"""

import msgspec
from msgspec import Raw

from trio_sched.documents.json_values import encode
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod

_LEFT_OUT = ("apiVersion", "kind")
"""kube-scheduler's objects lose these when they are decoded, so its extenders never get them."""

_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode


class RawPod(Pod, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A pod with the JSON that it was decoded from."""

    whole: bytes = b""


class RawNode(Node, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A node with the JSON that it was decoded from."""

    whole: bytes = b""


def keep_raw_pod(pod: Pod, raw: bytes) -> Pod:
    """*pod* with *raw*, the JSON it was decoded from."""
    return RawPod(pod.metadata, pod.spec, pod.status, unabridged(raw))


def keep_raw_node(node: Node, raw: bytes) -> Node:
    """*node* with *raw*, the JSON it was decoded from."""
    return RawNode(node.metadata, node.spec, node.status, unabridged(raw))


def raw_json(subject: Pod | Node) -> bytes:
    """*subject* as JSON: as it was decoded if that was kept, else with the fields that a scheduler reads."""
    if isinstance(subject, RawPod | RawNode):
        return subject.whole
    return encode(subject)


def unabridged(raw: bytes) -> bytes:
    """The object in *raw* as kube-scheduler would send it: without its type and without ``managedFields``."""
    fields = _decode_fields(raw)
    for name in _LEFT_OUT:
        fields.pop(name, None)
    metadata = fields.get("metadata")
    if metadata is not None:
        inner = _decode_fields(metadata)
        inner.pop("managedFields", None)
        fields["metadata"] = Raw(encode(inner))
    return encode(fields)
