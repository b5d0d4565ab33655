"""Pods and nodes that keep the whole JSON they came as, for those who must pass them on unabridged.

Our structs hold only what a scheduler reads. A webhook is to see everything, so what may be sent to one is kept beside
the fields; it costs several KB an object, and is made only where somebody needs it.
"""

import msgspec
from msgspec import Raw

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod

_LEFT_OUT = ("apiVersion", "kind")
"""kube-scheduler's objects lose them when they are decoded, so nobody is used to seeing them."""

_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class WholePod(Pod, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A pod with the JSON that it was decoded from."""

    whole: bytes = b""


class WholeNode(Node, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A node with the JSON that it was decoded from."""

    whole: bytes = b""


def keep_whole_pod(pod: Pod, raw: bytes) -> Pod:
    """*pod* with *raw*, the JSON it was decoded from."""
    return WholePod(pod.metadata, pod.spec, pod.status, unabridged(raw))


def keep_whole_node(node: Node, raw: bytes) -> Node:
    """*node* with *raw*, the JSON it was decoded from."""
    return WholeNode(node.metadata, node.spec, node.status, unabridged(raw))


def whole_json(subject: Pod | Node) -> bytes:
    """All of *subject* that is known, as JSON: everything if it was kept, else what a scheduler reads."""
    if isinstance(subject, WholePod | WholeNode):
        return subject.whole
    return _encode(subject)


def unabridged(raw: bytes) -> bytes:
    """The object in *raw* as kube-scheduler would pass it on: without type and without ``managedFields``."""
    fields = _decode_fields(raw)
    for name in _LEFT_OUT:
        fields.pop(name, None)
    metadata = fields.get("metadata")
    if metadata is not None:
        inner = _decode_fields(metadata)
        inner.pop("managedFields", None)
        fields["metadata"] = Raw(_encode(inner))
    return _encode(fields)
