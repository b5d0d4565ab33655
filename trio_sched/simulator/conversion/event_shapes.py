"""Events are served in two versions: core v1 and events.k8s.io/v1. They are stored in the first."""

from collections.abc import Mapping

from trio_sched.documents.json_values import Json

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


def to_core(fields: Json) -> Json:
    """The core v1 form of an events.k8s.io/v1 event's fields."""
    return _renamed(fields, _RENAMED_BACK, CORE_ALWAYS)


def from_core(fields: Json) -> Json:
    """The events.k8s.io/v1 form of a stored event's fields."""
    shown = _renamed(fields, _RENAMED, _EVENTS_ALWAYS)
    for name in ("reportingController", "reportingInstance"):
        if not shown.get(name):
            shown.pop(name, None)
    return shown


def _renamed(fields: Json, names: Mapping[str, str], always: Json) -> Json:
    """*fields* under other *names*, behind those that are *always* written."""
    written = dict(always)
    for name, value in fields.items():
        written[names.get(name, name)] = value
    return written
