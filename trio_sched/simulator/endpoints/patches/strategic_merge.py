"""Strategic merge patches: merge patches in which some lists are merged by a key."""

from collections.abc import Callable
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import shortened
from trio_sched.simulator.validation.meta.shapes import Field, fields_of

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_UNKNOWN = Field("raw")


class StrategicMergeError(TrioSchedError):
    """The patch contradicts itself or the rules of strategic merging.

    Args:
        text: the error, in the words of Kubernetes.
        code: the HTTP status with which the API server answers.
    """

    def __init__(self, text: str, code: int = 500) -> None:
        super().__init__(text)
        self.code = code


def strategic_merge(current: Json, patch: Json, message: str = "") -> Json:
    """Apply a patch and return the outcome; neither argument is changed.

    Args:
        current: the object as it is.
        patch: the changes.
        message: what *current* is, as `fields_of` has it: it tells which lists are merged by which key. Lists of others
            are replaced.

    Raises:
        StrategicMergeError: an unknown directive, or a list element without its key.
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        replacement: Json = without_directives(patch)
        return replacement
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise StrategicMergeError(f"Unknown patch type: {directive}")
    merged = dict(current)
    if _RETAIN_KEYS in patch:
        retained = patch[_RETAIN_KEYS]
        if not isinstance(retained, list):
            raise StrategicMergeError("invalid patch format of retainKeys", 400)
        merged = {name: value for name, value in merged.items() if name in retained}
    for name in patch:
        if name.startswith(_DELETE_FROM) and isinstance(patch[name], list):
            field = name.removeprefix(_DELETE_FROM)
            merged[field] = [element for element in merged.get(field) or () if element not in patch[name]]
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(merged, name, value, fields_of(message).get(name, _UNKNOWN))
    for name in patch:
        if name.startswith(_ORDER):
            field = name.removeprefix(_ORDER)
            _set_order(merged, field, _listed(patch, name), fields_of(message).get(field, _UNKNOWN))
    return merged


def _listed(patch: Json, directive: str) -> list[Any]:
    """The list that *directive* has.

    Raises:
        StrategicMergeError: it has something else.
    """
    found = patch[directive]
    if not isinstance(found, list):
        raise StrategicMergeError(f"{directive} must be a list, not {shortened(repr(found))}")
    return found


def _merge_field(merged: Json, name: str, value: Any, field: Field) -> None:
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict):
        if value.get(_DIRECTIVE) == "delete":
            merged.pop(name, None)
            return
        existing = merged.get(name)
        merged[name] = strategic_merge(existing if isinstance(existing, dict) else {}, value, field.type)
    elif isinstance(value, list):
        existing = merged.get(name)
        known = existing if isinstance(existing, list) else []
        if field.merge_key and all(isinstance(element, dict) for element in value):
            merged[name] = _merge_list(known, value, field.merge_key, field.type.removeprefix("list "))
        elif field.merge_key == "":
            merged[name] = [*known, *(element for element in value if element not in known)]
        else:
            merged[name] = value
    else:
        merged[name] = value


def _merge_list(existing: list[Json], patch: list[Json], key: str, message: str) -> list[Json]:
    if any(element == {_DIRECTIVE: "replace"} for element in patch):
        return [without_directives(element) for element in patch if _DIRECTIVE not in element]
    merged = list(existing)
    for element in patch:
        if key not in element:
            shown = " ".join(f"{name}:{value}" for name, value in sorted(element.items()))
            raise StrategicMergeError(f"map: map[{shown}] does not contain declared merge key: {key}")
        place = next((i for i, known in enumerate(merged) if known.get(key) == element[key]), None)
        if element.get(_DIRECTIVE) == "delete":
            merged = [known for known in merged if known.get(key) != element[key]]
        elif place is None:
            merged.append(strategic_merge({}, element, message))
        else:
            merged[place] = strategic_merge(merged[place], element, message)
    return merged


def _set_order(merged: Json, name: str, order: list[Any], field: Field) -> None:
    """Bring the elements named in *order* into that order; the others keep their place relative to their forerunner."""
    elements = merged.get(name)
    if not isinstance(elements, list):
        return
    key = field.merge_key
    identity: Callable[[Any], Any] = (lambda element: element.get(key)) if key else (lambda element: element)
    wanted = [entry.get(key) if key and isinstance(entry, dict) else entry for entry in order]
    listed = sorted((e for e in elements if identity(e) in wanted), key=lambda e: wanted.index(identity(e)))
    others = [element for element in elements if identity(element) not in wanted]
    # Elements that the patch does not name were added by other writers; they stay behind those that it names.
    merged[name] = listed + others


def without_directives(value: Any) -> Any:
    """*value* without the directives, nulls dropped from its maps."""
    if isinstance(value, dict):
        return {
            name: without_directives(inner)
            for name, inner in value.items()
            if not name.startswith("$") and inner is not None
        }
    if isinstance(value, list):
        return [without_directives(inner) for inner in value]
    return value
