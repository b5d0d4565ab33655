"""``python -m contrib.api_shapes.make_shapes TREE``: writes ``trio_sched/simulator/validation/meta/shapes.json``.

*TREE* is a checkout of Kubernetes. Numbers and types of the fields stand in its ``.proto`` files; how JSON shows them,
and by which keys the items of lists are merged, in its OpenAPI document. Only what the served kinds can hold is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trio_sched.simulator.storage.resource_types import BUILT_IN_TYPES

TARGET: Final = Path(__file__).parents[2] / "trio_sched" / "simulator" / "validation" / "meta" / "shapes.json"

_PROTO_FILES: Final = (
    "staging/src/k8s.io/api/*/*/generated.proto",
    "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/generated.proto",
    "staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/generated.proto",
)
_BESIDE_KINDS: Final = (
    "meta.v1.DeleteOptions",
    "policy.v1.Eviction",
    "autoscaling.v1.Scale",
    "authentication.v1.SelfSubjectReview",
    "authentication.v1.TokenRequest",
    "authentication.v1.TokenReview",
    "authorization.v1.LocalSubjectAccessReview",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "authorization.v1.SubjectAccessReview",
)
"""Objects that only requests have."""
_SPECIAL: Final = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "micro_time",
    "meta.v1.Duration": "string",
    "meta.v1.FieldsV1": "raw",
    "apimachinery.pkg.util.intstr.IntOrString": "int_or_string",
    "apimachinery.pkg.api.resource.Quantity": "quantity",
    "apimachinery.pkg.runtime.RawExtension": "raw",
    "apiextensions.v1.JSON": "raw",
    "apiextensions.v1.JSONSchemaProps": "raw",
    "apiextensions.v1.JSONSchemaPropsOrArray": "raw",
    "apiextensions.v1.JSONSchemaPropsOrBool": "raw",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "raw",
    "authentication.v1.ExtraValue": "list string",
    "authorization.v1.ExtraValue": "list string",
}
"""Messages that JSON has another form for."""
FIELD_LINE: Final = re.compile(r"^  (?:(optional|repeated) (\S+)|map<string, (\S+)>) (\w+) = (\d+);$")

Table = dict[str, dict[str, list[Any]]]


def read_messages(tree: Path) -> Table:
    """Message → field → number and type."""
    messages: Table = {}
    for pattern in _PROTO_FILES:
        for path in sorted(tree.glob(pattern)):
            messages |= messages_in(path.read_text())
    return messages


def messages_in(text: str) -> Table:
    """The messages of one ``.proto`` file, as `read_messages` returns them."""
    found = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    assert found, text[:200]
    return dict(_messages(text, found[1]))


def _messages(text: str, package: str) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    name, fields = "", dict[str, list[Any]]()
    for line in text.split("\n"):
        if line.startswith("message "):
            name, fields = line.split()[1], {}
            yield f"{_short(package)}.{name}", fields
        elif found := FIELD_LINE.match(line):
            label, type_, value, field, number = found.groups()
            prefix = "map " if value else "list " if label == "repeated" else ""
            fields[field] = [int(number), prefix + _type(value or type_, package)]


def _short(package: str) -> str:
    parts = package.removeprefix("k8s.io.").split(".")
    return ".".join(parts[-2:]) if parts[-1].startswith("v") else ".".join(parts)


def _type(name: str, package: str) -> str:
    if name in ("string", "bool", "int32", "int64", "double", "bytes"):
        return name
    package, _, name = (name.removeprefix(".") if "." in name else f"{package}.{name}").rpartition(".")
    full = f"{_short(package)}.{name}"
    return _SPECIAL.get(full, full)


def read_definitions(tree: Path) -> dict[str, dict[str, Any]]:
    """Message → its definition in JSON."""
    document = json.loads((tree / "api" / "openapi-spec" / "swagger.json").read_text())
    return {".".join(name.split(".")[-3:]): definition for name, definition in document["definitions"].items()}


def make_table(messages: Table, definitions: dict[str, dict[str, Any]]) -> Table:
    """What is reachable from the kinds that are served.

    Returns:
        Message → field in JSON → number and type; then, for fields that patches merge, the key of their items (null:
        they are no list that is merged) and the strategy; then, unless it follows from the type, how server-side apply
        takes the field: the keys by which items are told apart, "set", or "atomic".
    """
    waiting = [
        message_of_kind(resource.api_version, resource.kind) for resource in BUILT_IN_TYPES if not resource.computed
    ]
    waiting += _BESIDE_KINDS
    table: Table = {}
    while waiting:
        message = waiting.pop()
        if message in table:
            continue
        table[message] = fields = {}
        definition = definitions.get(message)
        properties = None if definition is None else definition.get("properties", {})
        in_json = {name.lower(): name for name in properties or ()}  # protobuf has uID for uid
        if "kind" in in_json and "kind" not in messages[message]:
            fields |= {"apiVersion": [0, "string"], "kind": [0, "string"]}
        for name, (number, type_) in messages[message].items():
            inner = type_.removeprefix("list ").removeprefix("map ")
            if inner in messages:
                waiting.append(inner)
            name = in_json.get(name.lower(), name)
            shown = (properties or {}).get(name)
            if properties is not None and shown is None:
                assert type_ in messages, (message, name, type_)
                type_ = f"inline {type_}"
            fields[name] = [number, type_]
            if strategy := (shown or {}).get("x-kubernetes-patch-strategy"):
                fields[name] += [(shown or {}).get("x-kubernetes-patch-merge-key", ""), strategy]
            if applied := _applied(shown or {}, definitions.get(type_, {})):
                fields[name] += [*[None, ""][len(fields[name]) - 2 :], applied]
    return dict(sorted(table.items()))


def _applied(shown: dict[str, Any], definition: dict[str, Any]) -> list[str] | str:
    """How server-side apply takes a field; empty: as its type says."""
    if shown.get("x-kubernetes-list-type") == "map":
        keys: list[str] = shown["x-kubernetes-list-map-keys"]
        return sorted(keys)
    if shown.get("x-kubernetes-list-type") == "set":
        return "set"
    atomic = "atomic" in (shown.get("x-kubernetes-map-type"), definition.get("x-kubernetes-map-type"))
    return "atomic" if atomic else ""


def message_of_kind(api_version: str, kind: str) -> str:
    """The name of the message that objects of *kind* are."""
    group, _, version = api_version.rpartition("/")
    return f"{group.split('.')[0] or 'core'}.{version}.{kind}"


def main() -> None:
    """Write the table."""
    tree = Path(sys.argv[1])
    table = make_table(read_messages(tree), read_definitions(tree))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in table.items())
    TARGET.write_text(f"{{\n{lines}\n}}\n")
    sys.stdout.write(f"{len(table)} messages with {sum(map(len, table.values()))} fields in {TARGET}\n")


if __name__ == "__main__":
    main()
