"""Content negotiation: the form of the response, and the media type of the request's body."""

from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from attrs import field, frozen

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import decode_text
from trio_sched.documents.json_values import Json
from trio_sched.documents.yaml_reader import read_plain_documents
from trio_sched.go.text import shortened
from trio_sched.simulator.endpoints.protobuf_bodies import PROTOBUF_TYPE, read_protobuf
from trio_sched.simulator.errors.status_errors import bad_request, not_acceptable, unsupported_media_type

Form = Literal["object", "table", "metadata"]

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

MOST_LEVELS: Final = 100
"""How deep bodies may be nested; real objects are a third of that at most."""
TOO_DEEP: Final = f"the request's body is nested more than {MOST_LEVELS} levels deep"

_decode = msgspec.json.Decoder().decode


@frozen
class Accepted:
    """The form of an answer.

    Attributes:
        content_type: as it goes into the response's header.
        yaml: whether the JSON is to be rewritten as YAML.
        aggregated: for discovery, whether the client accepts all groups at once.
    """

    form: Form
    content_type: str
    aggregated: bool = False
    yaml: bool = field(init=False)

    @yaml.default
    def _yaml(self) -> bool:
        return self.content_type == YAML_TYPE


_PLAIN = Accepted("object", JSON_TYPE)


@lru_cache(maxsize=256)
def accepted_form(header: str) -> Accepted:
    """The first form of an ``Accept`` header that this server can write.

    Raises:
        ApiError: 406, it can write none of them. Protobuf is read (see `protobuf_bodies`) but never written.
    """
    if not header:
        return _PLAIN
    for choice in header.split(","):
        media_type, *parameters = (part.strip() for part in choice.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        if media_type in ("*/*", "application/*"):
            return _PLAIN
        if media_type not in (JSON_TYPE, YAML_TYPE):
            continue
        wanted = options.get("as", "")
        if media_type == YAML_TYPE and not wanted:
            return Accepted("object", YAML_TYPE)
        if not wanted:
            return _PLAIN
        if options.get("g") == "meta.k8s.io" and options.get("v") in ("v1", "v1beta1"):
            if wanted == "Table":
                return Accepted("table", JSON_TYPE)
            if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Accepted("metadata", JSON_TYPE)
        if wanted == "APIGroupDiscoveryList" and options.get("v") == "v2":
            return Accepted("object", AGGREGATED_DISCOVERY, aggregated=True)
    raise not_acceptable([JSON_TYPE, YAML_TYPE])


def media_type(content_type: str) -> str:
    """*content_type* without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_body(body: bytes, content_type: str) -> Any:
    """The value a request's body stands for; an empty body is ``None``.

    Raises:
        ApiError: 415 if the type is not supported, or a kind is not known in protobuf; 400 if the body is not what
            the type says.
    """
    if not body:
        return None
    value = _read(body, content_type)
    if (body.count(b"{") + body.count(b"[") > MOST_LEVELS or not body.startswith(b"{")) and is_too_deep(value):
        raise bad_request(TOO_DEEP)
    return value


def _read(body: bytes, content_type: str) -> Any:
    kind = content_type if content_type == JSON_TYPE else media_type(content_type)
    if kind in (JSON_TYPE, "") or kind.endswith("+json"):
        try:
            return _decode(body)
        except msgspec.DecodeError as error:
            raise bad_request(f"error decoding request body as JSON: {error}") from error
        except RecursionError:
            raise bad_request(TOO_DEEP) from None
    if kind == YAML_TYPE or kind.endswith("+yaml"):
        try:
            return next((document.value for document in read_plain_documents(decode_text(body))), None)
        except DocumentError as error:
            raise bad_request(f"error converting YAML to JSON: {error}") from error
    if kind == PROTOBUF_TYPE and (found := read_protobuf(body)) is not None:
        return found
    raise unsupported_media_type([JSON_TYPE, YAML_TYPE])


def is_too_deep(value: Any) -> bool:
    """Whether *value* is nested deeper than bodies may be."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def read_object(body: bytes, content_type: str) -> Json:
    """The object a request's body holds.

    Raises:
        ApiError: 415 or 400, as for ``read_body``; 400 also if the value is no object.
    """
    value = read_body(body, content_type)
    if not isinstance(value, dict):
        raise bad_request("the request's body is no object")
    return value


def mapping(value: Json, name: str) -> Json:
    """The field *name* of *value*; empty if it is missing.

    Raises:
        ApiError: 400, it is something else than an object.
    """
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise bad_request(f"{name} must be an object, not {shortened(repr(found))}")
    return found
