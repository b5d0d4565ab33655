"""Requests to extenders and their responses as JSON, with Go's field names, which are read in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
from attrs import frozen
from msgspec import Meta, Raw, Struct

from trio_sched.daemon.extenders.go_json import (
    INT64,
    STRING,
    GoType,
    as_go_reads,
    map_of,
    slice_of,
    struct,
    why_go_refuses,
)
from trio_sched.documents.deep_json import MAX_DEPTH, decode_deep, depth_of
from trio_sched.documents.json_values import encode
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.raw_object import raw_json

NodeNameToVictims = Mapping[str, tuple[Sequence[Pod], int]]
"""Node name → its victims, and how many disruption budgets their eviction would violate."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_T = TypeVar("_T")


class InvalidResponse(Exception):
    """A response that is no JSON, or not of the expected shape; the text is that of Go's decoder."""


@frozen
class FilterResult:
    """``ExtenderFilterResult``: the nodes that are left, and why others were filtered out."""

    names: tuple[str, ...] | None
    """From ``NodeNames``; None if it is not there."""
    listed: tuple[str, ...] | None
    """The names of the objects in ``Nodes``; None if it is not there."""
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    error: str


@frozen
class MetaVictims:
    """``MetaVictims``: the victims on one node, by UID."""

    uids: tuple[str, ...]
    pdb_violations: int


class _Named(Struct, gc=False):
    name: str | None = None


class _Listed(Struct, gc=False):
    metadata: _Named | None = None

    @property
    def name(self) -> str:
        return (self.metadata.name or "") if self.metadata is not None else ""


_read_fields = msgspec.json.Decoder(dict[str, Raw] | None).decode
_read_names = msgspec.json.Decoder(tuple[str | None, ...] | None).decode
_read_items = msgspec.json.Decoder(tuple[_Listed | None, ...] | None).decode
_read_reasons = msgspec.json.Decoder(dict[str, str | None] | None).decode
_read_text = msgspec.json.Decoder(str | None).decode
_read_number = msgspec.json.Decoder(Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None).decode
_read_objects = msgspec.json.Decoder(list[Raw] | None).decode


# --- requests -------------------------------------------------------------------------------------------------------


def request_about_nodes(pod: Pod, nodes: Mapping[str, Node], *, names_only: bool) -> bytes:
    """The body of a filter or prioritize request."""
    if names_only:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (raw_json(pod), encode(list(nodes)))
    items = b",".join(map(raw_json, nodes.values()))
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (raw_json(pod), items)


def request_about_victims(pod: Pod, victims: NodeNameToVictims, *, uids_only: bool) -> bytes:
    """The body of a preempt request."""
    by_node = [
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (encode(node), b",".join(_victims(pods, uids_only)), violations)
        for node, (pods, violations) in victims.items()
    ]
    whole, meta = (b"null", _object(by_node)) if uids_only else (_object(by_node), b"null")
    return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (raw_json(pod), whole, meta)


def _victims(pods: Iterable[Pod], uids_only: bool) -> list[bytes]:
    return [encode({"UID": pod.uid}) if uids_only else raw_json(pod) for pod in pods]


def _object(members: Iterable[bytes]) -> bytes:
    return b"{" + b",".join(members) + b"}"


def request_to_bind(pod: Pod, node_name: str) -> bytes:
    """The body of a bind request."""
    return encode({"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name})


# --- responses ------------------------------------------------------------------------------------------------------

_FILTER_RESULT: Final = struct(
    "v1.ExtenderFilterResult",
    Nodes=struct("v1.NodeList", items=slice_of(struct("v1.Node", metadata=struct("v1.ObjectMeta", name=STRING)))),
    NodeNames=slice_of(STRING),
    FailedNodes=map_of(STRING, "v1.FailedNodesMap"),
    FailedAndUnresolvableNodes=map_of(STRING, "v1.FailedNodesMap"),
    Error=STRING,
)
_PRIORITIES: Final = slice_of(struct("v1.HostPriority", Host=STRING, Score=INT64), "v1.HostPriorityList")
_BINDING_RESULT: Final = struct("v1.ExtenderBindingResult", Error=STRING)
_META_POD: Final = struct("v1.MetaPod", UID=STRING)
_META_VICTIMS: Final = struct("v1.MetaVictims", Pods=slice_of(_META_POD, "[]*v1.MetaPod"), NumPDBViolations=INT64)
_PREEMPTION_RESULT: Final = struct(
    "v1.ExtenderPreemptionResult", NodeNameToMetaVictims=map_of(_META_VICTIMS, "map[string]*v1.MetaVictims")
)


def read_filter_result(body: bytes) -> FilterResult:
    """The response to a filter request.

    Raises:
        InvalidResponse: *body* is none.
    """
    return _read(body, _filter_result, _FILTER_RESULT)


def read_priorities(body: bytes) -> list[tuple[str, int]]:
    """The response to a prioritize request: hosts and their scores.

    Raises:
        InvalidResponse: *body* is none.
    """
    return _read(body, _priorities, _PRIORITIES)


def read_bind_error(body: bytes) -> str:
    """The error in the response to a bind request; empty if there is none.

    Raises:
        InvalidResponse: *body* is no such response.
    """
    return _read(body, _bind_error, _BINDING_RESULT)


def read_victims(body: bytes) -> dict[str, MetaVictims]:
    """The response to a preempt request, by node name.

    Raises:
        InvalidResponse: *body* is none.
    """
    return _read(body, _victims_by_node, _PREEMPTION_RESULT)


def _read(body: bytes, decode: Callable[[bytes], _T], into: GoType) -> _T:
    """Decode *body*; if msgspec does not accept it, what Go would read of it.

    Raises:
        InvalidResponse: with Go's words.
    """
    # Newer Pythons decode more than Go; to count brackets is quick, also in large bodies.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and depth_of(body) > MAX_DEPTH:
        raise InvalidResponse("exceeded max depth")
    try:
        return decode(body)
    except _UNREADABLE:
        try:
            return decode_deep(decode, as_go_reads(body))
        except _UNREADABLE as problem:
            raise InvalidResponse(why_go_refuses(body, into) or "the response is malformed") from problem


def _filter_result(body: bytes) -> FilterResult:
    fields = _fields(body)
    nodes = fields.get("nodes")
    listed: tuple[_Listed | None, ...] | None = None
    if nodes is not None and bytes(nodes) != b"null":
        listed = _get(_fields(nodes), "items", _read_items) or ()
    names: tuple[str | None, ...] | None = _get(fields, "nodenames", _read_names)
    return FilterResult(
        names=None if names is None else tuple(name or "" for name in names),
        listed=None if listed is None else tuple("" if one is None else one.name for one in listed),
        failed=_reasons(fields, "failednodes"),
        unresolvable=_reasons(fields, "failedandunresolvablenodes"),
        error=_get(fields, "error", _read_text) or "",
    )


def _reasons(fields: Mapping[str, Raw], name: str) -> dict[str, str]:
    return {node: reason or "" for node, reason in (_get(fields, name, _read_reasons) or {}).items()}


def _priorities(body: bytes) -> list[tuple[str, int]]:
    hosts = [_fields(entry) for entry in _read_objects(body) or ()]
    return [(_get(host, "host", _read_text) or "", _get(host, "score", _read_number) or 0) for host in hosts]


def _bind_error(body: bytes) -> str:
    return _get(_fields(body), "error", _read_text) or ""


def _victims_by_node(body: bytes) -> dict[str, MetaVictims]:
    by_node = _get(_fields(body), "nodenametometavictims", _read_fields) or {}
    return {node: _meta_victims(_fields(raw)) for node, raw in by_node.items()}


def _meta_victims(fields: dict[str, Raw]) -> MetaVictims:
    pods = _get(fields, "pods", _read_objects) or ()
    uids = tuple(_get(_fields(pod), "uid", _read_text) or "" for pod in pods)
    return MetaVictims(uids, _get(fields, "numpdbviolations", _read_number) or 0)


def _fields(raw: bytes | Raw) -> dict[str, Raw]:
    """The members of an object by their names in lower case; none for null."""
    return {name.lower(): value for name, value in (_read_fields(raw) or {}).items()}


def _get(fields: Mapping[str, Raw], name: str, read: Any) -> Any:
    raw = fields.get(name)
    return None if raw is None else read(raw)
