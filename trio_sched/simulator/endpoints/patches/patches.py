"""The patch formats an API server takes: what each makes of an object."""

import copy
from typing import Any, Final

from trio_sched.documents.json_values import Json, encode
from trio_sched.errors import TrioSchedError

_MOST_OPERATIONS: Final = 10_000
_MOST_COPIED_BYTES: Final = 3 << 20
_LONGEST_INDEX: Final = 10


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class PatchError(TrioSchedError):
    """A patch that cannot be applied to this object."""


class PatchTestFailed(PatchError):
    """A ``test`` operation of a JSON patch found something else."""


def merge_patch(current: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386); *current* is not changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(current: Json, operations: Any) -> Json:
    """Apply a JSON patch (RFC 6902) to a copy of *current*.

    Raises:
        PatchTestFailed: a ``test`` did not hold.
        PatchError: an operation is malformed or its path leads nowhere.
    """
    if not isinstance(operations, list):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > _MOST_OPERATIONS:
        raise PatchError(f"a JSON patch has at most {_MOST_OPERATIONS} operations, not {len(operations)}")
    document: Any = copy.deepcopy(current)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise PatchError("an operation of a JSON patch is an object with op and path")
        if operation.get("op") == "copy":
            copied += len(encode(_find(document, str(operation.get("from")))))
            if copied > _MOST_COPIED_BYTES:
                raise PatchError(f"the copy operations of a JSON patch copy more than {_MOST_COPIED_BYTES} bytes")
        document = _apply(document, operation)
    if not isinstance(document, dict):
        raise PatchError("the patch leaves something that is no object")
    return document


def _apply(document: Any, operation: Json) -> Any:
    path = operation["path"]
    match operation.get("op"):
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _remove(document, path)[0]
        case "replace":
            _find(document, path)
            if path == "":
                return _value(operation)
            return _add(_remove(document, path)[0], path, _value(operation))
        case "move":
            document, moved = _remove(document, str(operation.get("from")))
            return _add(document, path, moved)
        case "copy":
            return _add(document, path, copy.deepcopy(_find(document, str(operation.get("from")))))
        case "test":
            try:
                found = _find(document, path)
            except PatchError:
                found = None
            if found != operation.get("value"):
                raise PatchTestFailed(f"testing path {path} failed")
            return document
        case unknown:
            raise PatchError(f"Unexpected kind: {unknown}")


def _value(operation: Json) -> Any:
    if "value" not in operation:
        raise PatchError(f"{operation.get('op')} operation does not apply: value is missing")
    return copy.deepcopy(operation["value"])


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise PatchError(f"jsonpatch path {path!r} does not start with a slash")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _index(container: list[Any], step: str, *, length: int, path: str) -> int:
    if not (step.isascii() and step.removeprefix("-").isdigit() and len(step) < _LONGEST_INDEX):
        raise PatchError(f"unable to find {path}: {step!r} is no index")
    index = int(step)
    if not 0 <= index < length:
        raise PatchError(f"unable to access invalid index {step}: {path}")
    return index


def _descend(container: Any, step: str, path: str) -> Any:
    if isinstance(container, list):
        return container[_index(container, step, length=len(container), path=path)]
    if isinstance(container, dict) and step in container:
        return container[step]
    raise PatchError(f"doc is missing path: {path}: missing value")


def _find(document: Any, path: str) -> Any:
    for step in _steps(path):
        document = _descend(document, step, path)
    return document


def _add(document: Any, path: str, value: Any) -> Any:
    steps = _steps(path)
    if not steps:
        return value
    container = document
    for step in steps[:-1]:
        container = _descend(container, step, path)
    last = steps[-1]
    if isinstance(container, list):
        if last == "-":
            container.append(value)
        else:
            container.insert(_index(container, last, length=len(container) + 1, path=path), value)
    elif isinstance(container, dict):
        container[last] = value
    else:
        raise PatchError(f"add operation does not apply: doc is missing path: {path}")
    return document


def _remove(document: Any, path: str) -> tuple[Any, Any]:
    steps = _steps(path)
    if not steps:
        return None, document
    container = document
    for step in steps[:-1]:
        container = _descend(container, step, path)
    removed = _descend(container, steps[-1], path)
    if isinstance(container, list):
        container.pop(int(steps[-1]))
    else:
        del container[steps[-1]]
    return document, removed
