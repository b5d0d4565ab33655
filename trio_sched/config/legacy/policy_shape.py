"""The shape of a scheduling policy (``kind: Policy``), as the versions 1.3 to 1.22 of Kubernetes read it."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from trio_sched.config.decode import Bool, Decoding, GoType, Integer, ListOf, Raw, String, Struct
from trio_sched.config.document import interpret, read_document
from trio_sched.config.durations import parse_duration
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy.values import by_lower_case, decode_whole, with_shape_case
from trio_sched.config.plugin_arguments.resource_spec import RESOURCES
from trio_sched.config.plugin_arguments.utilization_shape import SHAPE
from trio_sched.config.wire_types import EXTENDER, GROUP, TYPE_META
from trio_sched.documents.tree import Number, Tree
from trio_sched.go.durations import format_duration
from trio_sched.go.text import shortened

KIND: Final = "Policy"
_VERSIONS: Final = ("v1", f"{GROUP}/v1")
_STRING: Final = String()
_STRINGS: Final = ListOf(_STRING)
_INT64: Final = Integer(64)


@frozen
class _Timeout:
    """A duration that a policy may also give as nanoseconds; decoded to the text that v1 has."""

    name: str = "time.Duration"

    def zero(self) -> str:
        return "0s"

    def decode(self, tree: Tree, decoding: Decoding) -> str | None:
        if isinstance(tree, Number):
            nanoseconds = _INT64.decode(tree, decoding)
            return None if nanoseconds is None else format_duration(nanoseconds)
        text = _STRING.decode(tree, decoding)
        return None if text is None else format_duration(parse_duration(text))


_TLS: Final = EXTENDER.fields["tlsConfig"]
_LEGACY_EXTENDER: Final = Struct("LegacyExtender", {**EXTENDER.fields, "httpTimeout": _Timeout(), "tlsConfig": Raw()})
_LABELS: Final[dict[str, GoType]] = {"labels": _STRINGS, "presence": Bool()}
_PREDICATE: Final = Struct(
    "PredicatePolicy",
    {
        "name": _STRING,
        "argument": Struct(
            "PredicateArgument",
            {
                "serviceAffinity": Struct("ServiceAffinity", {"labels": _STRINGS}),
                "labelsPresence": Struct("LabelsPresence", _LABELS),
            },
        ),
    },
)
_PRIORITY: Final = Struct(
    "PriorityPolicy",
    {
        "name": _STRING,
        "weight": _INT64,
        "argument": Struct(
            "PriorityArgument",
            {
                "serviceAntiAffinity": Struct("ServiceAntiAffinity", {"label": _STRING}),
                "labelPreference": Struct("LabelPreference", {"label": _STRING, "presence": Bool()}),
                "requestedToCapacityRatioArguments": Struct(
                    "RequestedToCapacityRatioArguments", {"shape": SHAPE, "resources": RESOURCES}
                ),
            },
        ),
    },
)
POLICY: Final = Struct(
    KIND,
    {
        "predicates": ListOf(_PREDICATE),
        "priorities": ListOf(_PRIORITY),
        "extenders": ListOf(_LEGACY_EXTENDER),
        "hardPodAffinitySymmetricWeight": Integer(32),
        "alwaysCheckAllPredicates": Bool(),
    },
    embedded=TYPE_META,
)
"""A policy, its fields as it should spell them."""


def _names(struct: Struct) -> list[str]:
    """The names of the fields of *struct*, at any depth."""
    names = [*struct.fields]
    for type_ in struct.fields.values():
        inner = type_.item if isinstance(type_, ListOf) else type_
        if isinstance(inner, Struct):
            names += _names(inner)
    return names


_CASELESS: Final = by_lower_case(
    "apiVersion", "kind", *_names(POLICY), *(_names(_TLS) if isinstance(_TLS, Struct) else ())
)


def is_policy(text: str) -> bool:
    """Whether *text* is of the kind ``Policy``."""
    try:
        return interpret(read_document(text)[0]).kind == KIND
    except ConfigError:
        return False


def read_policy(text: str) -> Mapping[str, Any]:
    """The fields that a policy gives; read without regard to case, as the first versions did.

    Raises:
        ConfigError: *text* is no policy.
    """
    tree, duplicates = read_document(text)
    kind = interpret(tree)
    if kind.kind not in ("", KIND) or (kind.api_version and kind.api_version not in _VERSIONS):
        got = " ".join(filter(None, (kind.kind, "of", kind.api_version)))
        raise ConfigError.of(f"a policy must have kind: {KIND} and apiVersion: v1, got {shortened(got)}")
    return decode_whole(with_shape_case(tree, _CASELESS), POLICY, duplicates=duplicates)
