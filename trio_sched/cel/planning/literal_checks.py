"""Arguments that are literals and can be seen to be wrong before anything is evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.cel.checking.checker import Checked
from trio_sched.cel.errors import CompileError, EvaluationError, Issue
from trio_sched.cel.library.regexes import LARGEST, TOO_LARGE, compiled
from trio_sched.cel.library.string_format import ACCEPTED, interpolate
from trio_sched.cel.syntax.nodes import Call, Constant, ListLiteral, MapLiteral, Node, parts
from trio_sched.cel.values.times import parse_cel_duration, parse_timestamp, timestamp_of
from trio_sched.cel.values.types import DYN, Type, long_name


def invalid_literals(checked: Checked) -> Iterator[Issue]:
    """Literals that are no duration, timestamp or pattern although they are used as one, and formats."""
    left = [checked.root]
    instructions = 0
    while left:
        node = left.pop()
        if isinstance(node, Call):
            instructions += _instructions(node)
            if instructions > LARGEST:
                raise CompileError("the regular expressions are too large together: write shorter repetitions")
            if node.function in ("duration", "timestamp", "matches") and node.arguments:
                argument = node.arguments[0]
                if isinstance(argument, Constant) and not _is_valid(node.function, argument):
                    yield Issue(argument.at, f"invalid {node.function} argument")
            elif node.function == "format":
                yield from _format_issues(node, checked)
        left.extend(parts(node))


def _instructions(node: Call) -> int:
    """The number of instructions of the compiled pattern, if it is a literal."""
    if node.function not in ("matches", "find", "findAll"):
        return 0
    pattern = next((one for one in node.arguments if isinstance(one, Constant) and one.kind == "string"), None)
    if pattern is None:
        return 0
    try:
        return int(compiled(pattern.value).programsize)
    except EvaluationError as error:
        return LARGEST // 3 if TOO_LARGE in str(error) else 1


def _is_valid(function: str, argument: Constant) -> bool:
    value = argument.value
    try:
        if function == "matches":
            compiled(value)
        elif function == "duration":
            return argument.kind == "string" and parse_cel_duration(value) is not None
        elif argument.kind == "int":
            timestamp_of(value)
        else:
            return parse_timestamp(value) is not None
    except EvaluationError:
        return False
    return True


class _Misfit(EvaluationError):
    """An argument that its clause does not take."""

    def __init__(self, node: Node, problem: str) -> None:
        super().__init__(problem)
        self.node = node


def _format_issues(node: Call, checked: Checked) -> Iterator[Issue]:
    text, arguments = node.target, node.arguments[0] if node.arguments else None
    if not (isinstance(text, Constant) and text.kind == "string" and isinstance(arguments, ListLiteral)):
        return
    elements = arguments.elements

    def check(index: int, clause: str, _precision: int | None) -> str:
        misfit = _misfit(elements[index], clause, checked)
        if misfit is not None:
            raise _Misfit(misfit, ACCEPTED[clause][0] + long_name(Type(checked.types[id(misfit)].name)))
        return ""

    try:
        _text, count = interpolate(text.value, len(elements), check, is_checked=True)
    except _Misfit as misfit:
        yield Issue(misfit.node.at, f"error during formatting: {misfit}")
    except EvaluationError as error:
        yield Issue(node.at, str(error))
    else:
        if len(elements) > count:
            problem = f"too many arguments supplied to string.format (expected {count}, got {len(elements)})"
            yield Issue(node.at, problem)


def _misfit(node: Node, clause: str, checked: Checked) -> Node | None:
    """The part of an argument that the clause does not take."""
    found = checked.types[id(node)]
    if found != DYN and long_name(Type(found.name)) not in ACCEPTED[clause][1]:
        return node
    if clause == "s" and isinstance(node, ListLiteral | MapLiteral):
        for part in parts(node):
            misfit = _misfit(part, clause, checked)
            if misfit is not None:
                return misfit
    return None
