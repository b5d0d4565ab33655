"""All functions by their names and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from trio_sched.cel.library import conversions, kubernetes_functions, list_functions, string_functions, time_functions
from trio_sched.cel.values.values import Value

SINGLE: Final = frozenset(
    {"!_", "-_", "size", "type", "dyn", "matches", "sort", "@in", "contains", "startsWith", "endsWith"}
)
"""Functions that look at the types of their arguments themselves."""


@cache
def implementations() -> Mapping[str, Callable[..., Value]]:
    """``name(type, …)``, or for those in `SINGLE` ``name`` → a function of the activation and the arguments."""
    return {
        **conversions.FUNCTIONS,
        **string_functions.FUNCTIONS,
        **list_functions.FUNCTIONS,
        **time_functions.FUNCTIONS,
        **kubernetes_functions.FUNCTIONS,
    }
