"""Expressions that are ready to be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import field, frozen

from trio_sched.cel.checking.checker import Checked, check
from trio_sched.cel.checking.environment import Environment
from trio_sched.cel.errors import COST_EXCEEDED, Aborted, CompileError, EvaluationError, InvalidExpression
from trio_sched.cel.planning.literal_checks import invalid_literals
from trio_sched.cel.planning.planner import Planner
from trio_sched.cel.runtime.activation import COST_LIMIT, Activation
from trio_sched.cel.runtime.chains import Step, Variable
from trio_sched.cel.syntax.parser import parse
from trio_sched.cel.syntax.recursion import deep_recursion
from trio_sched.cel.values.types import Type
from trio_sched.cel.values.values import Value
from trio_sched.go.text import shortened
from trio_sched.tracebacks import forget_tracebacks

_DEEP: Final = 60
"""How deep expressions may be nested for Python's own recursion limit; every level takes a few calls."""
_LONGEST: Final = 4_000
"""Characters of an error that are kept; texts that an expression makes can be as long as millions."""


@frozen(eq=False)
class Outcome:
    """What an evaluation came to: a value, or why there is none; and what it cost."""

    value: Value
    error: EvaluationError | None
    cost: int
    work: int = 0
    """Elements that were looked at without being paid for."""


@frozen(eq=False)
class Program:
    """An expression that was compiled; it can be evaluated any number of times."""

    expression: str
    checked: Checked = field(repr=False)
    _step: Step = field(repr=False)
    _slots: int
    variables: tuple[str, ...]
    """Their names, which `evaluate` must be given."""
    _is_deep: bool

    @property
    def type(self) -> Type:
        """The static type of the expression."""
        return self.checked.type

    def evaluate(self, variables: Mapping[str, Value]) -> Value:
        """The value for these *variables*, which are `values.Value`s.

        Raises:
            EvaluationError: there is none.
        """
        activation = Activation(self._slots)
        for slot, name in enumerate(self.variables):
            activation.values[slot] = variables[name]
        return self._run(activation)

    def evaluate_one(self, variable: Value) -> Value:
        """Like `evaluate`, for the only variable of the environment."""
        activation = Activation(self._slots)
        activation.values[0] = variable
        return self._run(activation)

    def outcome(self, variables: Mapping[str, Value]) -> Outcome:
        """Like `evaluate`, with what it cost."""
        activation = Activation(self._slots)
        for slot, name in enumerate(self.variables):
            activation.values[slot] = variables[name]
        return self._outcome(activation)

    def outcome_one(self, variable: Value) -> Outcome:
        """Like `evaluate_one`, with what it cost."""
        activation = Activation(self._slots)
        activation.values[0] = variable
        return self._outcome(activation)

    def _outcome(self, activation: Activation) -> Outcome:
        try:
            return Outcome(self._run(activation), None, activation.cost, activation.work)
        except EvaluationError as error:
            forget_tracebacks(error)
            return Outcome(None, error, activation.cost, activation.work)

    def _run(self, activation: Activation) -> Value:
        try:
            if self._is_deep:
                with deep_recursion():
                    value = self._step(activation)
            else:
                value = self._step(activation)
        except EvaluationError as error:
            if activation.cost > COST_LIMIT:  # what was spent counts, whatever else went wrong
                raise EvaluationError(COST_EXCEEDED) from None
            if len(str(error)) > _LONGEST:
                raise EvaluationError(shortened(str(error), _LONGEST)) from None
            raise
        except Aborted as error:
            raise EvaluationError(str(error)) from error
        except Exception as error:  # one expression must not end the process
            raise EvaluationError(f"internal error: {type(error).__name__}: {error}") from error
        if activation.cost > COST_LIMIT:
            raise EvaluationError(COST_EXCEEDED)
        return value


def compile_program(
    expression: str, environment: Environment, *, check_type: Callable[[Type], None] | None = None
) -> Program:
    """Compile *expression*.

    Args:
        expression: the text.
        environment: what it can refer to.
        check_type: raises `CompileError` for what the expression may not be.

    Raises:
        CompileError: it is none, its types do not fit together, or it cannot be evaluated whatever the variables are.
    """
    try:
        return _compile(expression, environment, check_type)
    except CompileError:
        raise
    except Aborted as error:
        raise CompileError(f"program instantiation failed: {error}") from error
    except Exception as error:  # one expression must not end the process
        raise CompileError(f"internal error: {type(error).__name__}: {error}") from error


def _compile(expression: str, environment: Environment, check_type: Callable[[Type], None] | None) -> Program:
    checked = check(expression, parse(expression), environment)
    issues = {*invalid_literals(checked)}
    if issues:
        raise InvalidExpression(expression, issues)
    if check_type is not None:
        check_type(checked.type)
    names = tuple(environment.variables)
    planner = Planner(checked, len(names), [{name: Variable(slot) for slot, name in enumerate(names)}])
    with deep_recursion():
        step = planner.plan(checked.root)
    return Program(expression, checked, step, planner.slots, names, planner.deepest > _DEEP)
