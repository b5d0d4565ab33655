"""Rules of ``x-kubernetes-validations``: expressions about values of custom resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trio_sched.cel.errors import CompileError
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required, unsupported

_FIELDS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str),
    "optionalOldSelf": bool,
}
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_problems(rule: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with one of the rules of a schema."""
    if not isinstance(rule, dict):
        yield required(f"{path}.rule", "rule is not specified")
        return
    for name, value in rule.items():
        if name not in _FIELDS:
            yield FieldProblem("FieldValueInvalid", f"{path}.{name}", "unknown field")
        elif value is not None and not isinstance(value, _FIELDS[name]):
            yield bad_value(
                f"{path}.{name}", value, "must be true or false" if _FIELDS[name] is bool else "must be a text"
            )
    text, reason = rule.get("rule"), rule.get("reason")
    if not isinstance(text, str) or not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif problem := _expression_problem(text):
        yield bad_value(f"{path}.rule", text, problem)
    if isinstance(reason, str) and reason not in _REASONS:
        yield unsupported(f"{path}.reason", reason, _REASONS)


def _expression_problem(text: str) -> str | None:
    from trio_sched.cel.expression import compile_expression  # CEL takes a while to import, and few clusters need it
    from trio_sched.cel.syntax.parser import parse
    from trio_sched.cel.values.types import BOOL, DYN

    try:
        parse(text)
    except CompileError as error:
        return f"compilation failed: {error}"
    try:
        found = compile_expression(text, {"self": DYN, "oldSelf": DYN})
    except CompileError as error:
        # Other errors may be due to the types of the schema, which are not declared here.
        return f"compilation failed: {error}" if "undeclared reference" in str(error) else None
    return None if found.type in (BOOL, DYN) else "cel expression must evaluate to a bool"
