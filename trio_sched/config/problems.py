"""The forms in which Kubernetes states that a field is wrong."""

from collections.abc import Iterable
from typing import Any

from trio_sched.config.errors import Problem
from trio_sched.go.text import json_text, quote, shortened


def invalid(path: str, value: Any, detail: str) -> Problem:
    """*value* (text, number, list or mapping) is not allowed at *path*."""
    return Problem(path, f"Invalid value: {_shown(value)}: {detail}")


def invalid_name(path: str, value: str, detail: str) -> Problem:
    """The problem with a value of a named string type, which is shown as JSON."""
    return Problem(path, f"Invalid value: {json_text(shortened(value))}: {detail}")


def required(path: str, detail: str = "") -> Problem:
    """Something is missing at *path*."""
    return Problem(path, "Required value" + (f": {detail}" if detail else ""))


def forbidden(path: str, detail: str) -> Problem:
    """Nothing may stand at *path*."""
    return Problem(path, f"Forbidden: {detail}")


def duplicate(path: str, value: str) -> Problem:
    """*value* is at a place before *path* as well."""
    return Problem(path, f"Duplicate value: {quote(shortened(value))}")


def unsupported(path: str, value: str, supported: Iterable[str]) -> Problem:
    """*value* is none of *supported*."""
    listed = ", ".join(map(quote, supported))
    return Problem(path, f"Unsupported value: {json_text(shortened(value))}: supported values: {listed}")


def _shown(value: Any) -> str:
    return quote(shortened(value)) if isinstance(value, str) else shortened(json_text(value), 2_000)
