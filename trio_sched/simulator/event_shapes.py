"""Events are served in two versions: core v1 and events.k8s.io/v1. They are stored in the first."""

from functools import lru_cache
from typing import Any

Json = dict[str, Any]

# core v1 name → events.k8s.io/v1 name. Names that are alike in both, such as reason and type, are not listed.
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_RENAMED_BACK = {new: old for old, new in _RENAMED.items()}

CORE_ALWAYS: Json = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
"""What core v1 always writes, even when it is empty."""
_EVENTS_ALWAYS: Json = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


@lru_cache(maxsize=64)  # most events have the same fields
def _core_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_RENAMED_BACK.get(name, name) for name in names)


@lru_cache(maxsize=64)
def _events_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_RENAMED.get(name, name) for name in names)


def to_core(fields: Json) -> Json:
    """The core v1 form of an events.k8s.io/v1 event's fields."""
    return CORE_ALWAYS | dict(zip(_core_names(tuple(fields)), fields.values(), strict=True))


def from_core(fields: Json) -> Json:
    """The events.k8s.io/v1 form of a stored event's fields."""
    shown = dict(zip(_events_names(tuple(fields)), fields.values(), strict=True))
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return _EVENTS_ALWAYS | shown
