"""``spec.workloadRef`` of pods, which 1.35 has: servers of other versions do not know the field."""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.storage.object_store import ObjectStore

_MINOR: Final = 35
_FIELD: Final = "workloadRef"


def has_unknown_reference(pod: Json, minor: int) -> bool:
    """Whether *pod* has a reference that a server of the *minor* version does not know."""
    return minor != _MINOR and _FIELD in (pod.get("spec") or {})


def drop_reference(fields: Json, minor: int) -> None:
    """Drop the reference of a new pod from its *fields* if a server of the *minor* version does."""
    if minor != _MINOR:
        fields["spec"].pop(_FIELD, None)


def drop_stored_references(store: ObjectStore, minor: int) -> None:
    """Show the pods of *store* from now on as a server of the *minor* version reads them."""
    if minor == _MINOR:
        return
    for pod in store.collection("pods").objects.values():
        if _FIELD in pod.fields["spec"]:
            spec = {name: value for name, value in pod.fields["spec"].items() if name != _FIELD}
            pod.show({**pod.fields, "spec": spec})
