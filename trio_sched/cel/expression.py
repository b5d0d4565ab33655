"""Expressions about plain Python values: CEL for those who have no devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from trio_sched.cel.checking.environment import Environment
from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.planning.program import Program, compile_program
from trio_sched.cel.values.literals import INT_LIMIT
from trio_sched.cel.values.types import Type
from trio_sched.cel.values.values import CelMap, Optional, Uint, Value

_MAX_DEPTH: Final = 100
_PLAIN: Final = (str, bytes, bool, float, Uint, type(None))


@frozen(eq=False)
class Expression:
    """An expression that was compiled; it can be evaluated any number of times."""

    text: str
    program: Program

    @property
    def type(self) -> Type:
        """The static type of the expression."""
        return self.program.type

    def evaluate(self, variables: Mapping[str, object]) -> Any:
        """What the expression comes to.

        Args:
            variables: a value of each variable, of its type: text, bytes, bools, numbers, None, lists or tuples, and
                dicts. Ints must fit 64 bits.

        Returns:
            Likewise; none of an optional is None, and types that Python does not have are of classes of this package.

        Raises:
            EvaluationError: it has no value for these variables, or they are none that an expression can have.
        """
        values: dict[str, Value] = {}
        for name in self.program.variables:
            if name not in variables:
                raise EvaluationError(f"no value is given for the variable {name!r}")
            try:
                values[name] = _value(variables[name], 0)
            except EvaluationError as error:
                raise EvaluationError(f"variable {name!r}: {error}") from error
        return _plain(self.program.evaluate(values))


def compile_expression(text: str, variables: Mapping[str, Type]) -> Expression:
    """Compile an expression.

    Args:
        text: the expression, in the dialect of Kubernetes.
        variables: name → static type of what it can refer to.

    Raises:
        CompileError: it is no expression, or its types do not fit together.
    """
    return Expression(text, compile_program(text, Environment(dict(variables), {})))


def _value(given: object, depth: int) -> Value:
    if depth > _MAX_DEPTH:
        raise EvaluationError(f"lists and dicts are nested deeper than {_MAX_DEPTH} levels")
    if isinstance(given, _PLAIN):
        return given
    if isinstance(given, int):
        if not -INT_LIMIT <= given < INT_LIMIT:
            raise EvaluationError(f"{given.bit_length()} bits do not fit into an int of 64 bits")
        return int(given)
    if isinstance(given, list | tuple):
        return [_value(one, depth + 1) for one in given]
    if isinstance(given, Mapping):
        entries: dict[object, Value] = {}
        for key, one in given.items():
            if not isinstance(key, str):
                raise EvaluationError(f"keys of dicts must be text, not {type(key).__name__}")
            entries[key] = _value(one, depth + 1)
        return CelMap(entries)
    raise EvaluationError(f"a value of the class {type(given).__name__} is none of an expression")


def _plain(value: Value) -> Any:
    if type(value) is list:
        return [_plain(one) for one in value]
    if type(value) is CelMap:
        return {_plain(key): _plain(one) for key, one in value.items()}
    if type(value) is Optional:
        return None if value.is_none else _plain(value.value)
    return value
