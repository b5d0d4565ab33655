"""Events are served in two versions: core v1 and events.k8s.io/v1. They are stored in the first."""

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

# What core v1 always writes, even when it is empty.
_CORE_ALWAYS: Json = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_EVENTS_ALWAYS: Json = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def to_core(fields: Json) -> Json:
    """The core v1 form of an events.k8s.io/v1 event's fields."""
    return complete_core({_RENAMED_BACK.get(name, name): value for name, value in fields.items()})


def complete_core(fields: Json) -> Json:
    """*fields* of a core v1 event with those it always shows."""
    return {**_CORE_ALWAYS, **fields}


def from_core(fields: Json) -> Json:
    """The events.k8s.io/v1 form of a stored event's fields."""
    shown = {_RENAMED.get(name, name): value for name, value in fields.items()}
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return {**_EVENTS_ALWAYS, **shown}
