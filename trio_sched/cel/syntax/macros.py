"""Calls that are no calls: what the parser makes of ``has``, comprehensions, ``cel.bind``, ``optMap``, ``sortBy``."""

from __future__ import annotations

from typing import Final, NoReturn, Protocol

from attrs import evolve

from trio_sched.cel.syntax.nodes import (
    Bind,
    Call,
    Comprehension,
    ListLiteral,
    Macro,
    Name,
    Node,
    OptionalMap,
    Select,
)

ACCUMULATOR: Final = "__result__"
"""The name of the hidden variable of a comprehension; no other may have it."""
_ONE_VARIABLE: Final[dict[tuple[str, int], Macro]] = {
    ("all", 2): "all",
    ("exists", 2): "exists",
    ("exists_one", 2): "exists_one",
    ("filter", 2): "filter",
    ("map", 2): "map",
    ("map", 3): "map",
}
_TWO_VARIABLES: Final[dict[tuple[str, int], Macro]] = {
    ("all", 3): "all",
    ("exists", 3): "exists",
    ("exists_one", 3): "exists_one",
    ("existsOne", 3): "exists_one",
    ("transformList", 3): "transformList",
    ("transformList", 4): "transformList",
    ("transformMap", 3): "transformMap",
    ("transformMap", 4): "transformMap",
    ("transformMapEntry", 3): "transformMapEntry",
    ("transformMapEntry", 4): "transformMapEntry",
}


class Failing(Protocol):
    """What expands macros: a parser."""

    def fail(self, at: int, message: str) -> NoReturn:
        """Give up on the expression."""


def expand_global(parser: Failing, at: int, function: str, arguments: tuple[Node, ...]) -> Node | None:
    """What a call without a target stands for; None if it is a call."""
    if function != "has" or len(arguments) != 1:
        return None
    (argument,) = arguments
    if not isinstance(argument, Select) or argument.is_optional or argument.tests:
        parser.fail(argument.at, "invalid argument to has() macro")
    return evolve(argument, at=at, tests=True)


def expand_method(parser: Failing, at: int, target: Node, function: str, arguments: tuple[Node, ...]) -> Node | None:
    """What a call with a target stands for; None if it is a call."""
    key = function, len(arguments)
    if key in _ONE_VARIABLE:
        return _comprehension(parser, at, _ONE_VARIABLE[key], target, arguments, 1)
    if key in _TWO_VARIABLES:
        return _comprehension(parser, at, _TWO_VARIABLES[key], target, arguments, 2)
    if key in (("optMap", 2), ("optFlatMap", 2)):
        name, body = arguments
        if not isinstance(name, Name) or name.name.startswith("."):
            parser.fail(name.at, f"{function}() variable name must be a simple identifier")
        return OptionalMap(at, target, name.name, body, function == "optFlatMap")
    if key == ("bind", 3) and isinstance(target, Name) and target.name == "cel":
        name, value, body = arguments
        if not isinstance(name, Name) or name.name.startswith("."):
            parser.fail(name.at, "cel.bind() variable names must be simple identifiers")
        return Bind(at, name.name, value, body)
    if key == ("sortBy", 2):
        return _sort_by(parser, at, target, arguments)
    return None


def _comprehension(
    parser: Failing, at: int, macro: Macro, over: Node, arguments: tuple[Node, ...], variables: int
) -> Node:
    names = tuple(_variable(parser, argument) for argument in arguments[:variables])
    if len(names) == 2 and names[0] == names[1]:
        parser.fail(arguments[1].at, f"duplicate variable name: {names[0]}")
    *condition, body = arguments[variables:]
    return Comprehension(at, macro, over, names, body, condition[0] if condition else None)


def _variable(parser: Failing, argument: Node) -> str:
    if not isinstance(argument, Name) or argument.name.startswith("."):
        parser.fail(argument.at, "argument must be a simple name")
    if argument.name == ACCUMULATOR:
        parser.fail(argument.at, "iteration variable overwrites accumulator variable")
    return argument.name


def _sort_by(parser: Failing, at: int, target: Node, arguments: tuple[Node, ...]) -> Node:
    if not isinstance(target, ListLiteral | Name | Select | Call | Comprehension):
        parser.fail(
            target.at, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    return Comprehension(at, "sortBy", target, (_variable(parser, arguments[0]),), arguments[1])
