"""Parses expressions: CEL's grammar, with the macros that Kubernetes switches on, and cel-go's limits.

Source: the language definition of CEL, and the behaviour of cel-go 0.26.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from trio_sched.cel.errors import InvalidExpression, Issue
from trio_sched.cel.syntax.lexer import KEYWORDS, Token, tokens
from trio_sched.cel.syntax.macros import expand_global, expand_method
from trio_sched.cel.syntax.nodes import (
    Call,
    Constant,
    Entry,
    ListLiteral,
    Logical,
    MapLiteral,
    MessageLiteral,
    Name,
    Node,
    Select,
)
from trio_sched.cel.syntax.recursion import deep_recursion
from trio_sched.cel.values import literals

MAX_NESTING: Final = 250
"""How deep parentheses, lists, maps, arguments, branches may be nested; operators, selections and methods as well."""
_PRECEDENCE: Final = {
    **dict.fromkeys(("||",), 1),
    **dict.fromkeys(("&&",), 2),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
"""The precedence of binary operators; all of them are left-associative."""
_LOGICAL: Final = {"||": "_||_", "&&": "_&&_"}
_NUMBERS: Final = ("int", "double")
_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    }
)


def parse(source: str) -> Node:
    """The expression in *source*.

    Raises:
        InvalidExpression: it is none.
    """
    with deep_recursion():
        return _Parser(source).parse()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self._tokens = tokens(source)
        self._next = 0
        self._nesting = 0

    def parse(self) -> Node:
        parsed, _depth = self._expression()
        if self._token.kind != "<EOF>":
            self._unexpected("<EOF>")
        return parsed

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _advance(self) -> Token:
        token = self._tokens[self._next]
        self._next += token.kind != "<EOF>"
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._advance() if self._token.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            self._unexpected(f"'{kind}'" if len(kind) < 3 else kind.upper())
        return self._advance()

    def _unexpected(self, wanted: str) -> NoReturn:
        token = self._token
        self.fail(token.at, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def fail(self, at: int, message: str) -> NoReturn:
        """Give up.

        Raises:
            InvalidExpression: always.
        """
        raise InvalidExpression(self.source, [Issue(at, message)])

    # --- rules; each returns what it has parsed, and how deep operators, selections and methods are nested in it -----

    def _expression(self) -> tuple[Node, int]:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self.fail(-1, f"expression recursion limit exceeded: {MAX_NESTING}")
        condition, depth = self._operators()
        question = self._accept("?")
        if question is not None:
            chosen, chosen_depth = self._operators()
            self._expect(":")
            other, other_depth = self._expression()
            depth = self._deeper(max(depth, chosen_depth, other_depth))
            condition = Call(question.at, "_?_:_", None, (condition, chosen, other))
        self._nesting -= 1
        return condition, depth

    def _deeper(self, depth: int) -> int:
        if depth >= MAX_NESTING:
            self.fail(-1, "max recursion depth exceeded")
        return depth + 1

    def _operators(self) -> tuple[Node, int]:
        """Operands and the binary operators between them."""
        operands: list[tuple[Node, int]] = [self._unary()]
        waiting: list[Token] = []
        while (precedence := _PRECEDENCE.get(self._token.kind, 0)) or waiting:
            while waiting and _PRECEDENCE[waiting[-1].kind] >= precedence:
                right, left = operands.pop(), operands.pop()
                operands.append(self._combined(waiting.pop(), left, right))
            if precedence:
                waiting.append(self._advance())
                operands.append(self._unary())
        return operands[0]

    def _combined(self, sign: Token, left: tuple[Node, int], right: tuple[Node, int]) -> tuple[Node, int]:
        (first, first_depth), (second, second_depth) = left, right
        depth = max(first_depth, second_depth)
        if sign.kind in _LOGICAL:  # a chain of them is no nesting, however long it is
            function = _LOGICAL[sign.kind]
            if isinstance(first, Logical) and first.function == function:
                return Logical(first.at, function, (*first.operands, second)), depth
            return Logical(sign.at, function, (first, second)), depth
        function = "@in" if sign.kind == "in" else f"_{sign.kind}_"
        return Call(sign.at, function, None, (first, second)), self._deeper(depth)

    def _unary(self) -> tuple[Node, int]:
        first = self._token
        if first.kind not in ("!", "-"):
            return self._member()
        if first.kind == "-" and self._tokens[self._next + 1].kind in _NUMBERS:
            return self._member()  # the sign belongs to the literal
        count = 0
        while self._accept(first.kind):
            count += 1
        operand, depth = self._member()
        if count % 2:
            return Call(first.at, f"{first.kind}_", None, (operand,)), depth
        return operand, depth

    def _member(self) -> tuple[Node, int]:
        member, depth = self._primary()
        while True:
            if dot := self._accept("."):
                member, depth = self._after_dot(dot, member, depth)
            elif bracket := self._accept("["):
                is_optional = self._accept("?") is not None
                index, index_depth = self._expression()
                self._expect("]")
                depth = self._deeper(max(depth, index_depth))
                member = Call(bracket.at, "_[?_]" if is_optional else "_[_]", None, (member, index))
            else:
                return member, depth

    def _after_dot(self, dot: Token, operand: Node, depth: int) -> tuple[Node, int]:
        is_optional = self._accept("?") is not None
        if self._token.kind == "quoted":
            self.fail(self._token.at, "unsupported syntax: '`'")
        field = self._expect("name")
        if is_optional or self._token.kind != "(":
            return Select(dot.at, operand, field.text, is_optional), self._deeper(depth)
        opened = self._advance()
        arguments, arguments_depth = self._arguments()
        depth = self._deeper(max(depth, arguments_depth))
        call = expand_method(self, opened.at, operand, field.text, arguments)
        return call or Call(opened.at, field.text, operand, arguments), depth

    def _arguments(self) -> tuple[tuple[Node, ...], int]:
        """Up to and with the closing parenthesis."""
        if self._accept(")"):
            return (), 0
        found, depth = [], 0
        while True:
            argument, argument_depth = self._expression()
            found.append(argument)
            depth = max(depth, argument_depth)
            if not self._accept(","):
                self._expect(")")
                return tuple(found), depth

    def _primary(self) -> tuple[Node, int]:
        token = self._token
        match token.kind:
            case "(":
                self._advance()
                inner = self._expression()
                self._expect(")")
                return inner
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "name":
                return self._named()
        return self._constant(), 0

    def _constant(self) -> Node:
        at = self._token.at
        is_negative = self._token.kind == "-" and self._tokens[self._next + 1].kind in _NUMBERS
        if is_negative:
            self._advance()
        token = self._token
        try:
            value = _value_of(token, is_negative=is_negative)
        except ValueError as problem:
            self.fail(at, str(problem))
        if value is _NO_LITERAL:
            self._unexpected("{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', …}")
        self._advance()
        kind = token.kind if token.kind not in KEYWORDS else "null" if value is None else "bool"
        return Constant(at, kind, value)

    def _list(self) -> tuple[Node, int]:
        at, depth = self._advance().at, 0
        elements: list[Node] = []
        optional: set[int] = set()
        while self._token.kind not in ("]", ","):
            if self._accept("?"):
                optional.add(len(elements))
            element, element_depth = self._expression()
            elements.append(element)
            depth = max(depth, element_depth)
            if self._token.kind != "," or self._tokens[self._next + 1].kind in ("]", ","):
                break
            self._advance()
        self._accept(",")
        self._expect("]")
        return ListLiteral(at, tuple(elements), frozenset(optional)), depth

    def _map(self) -> tuple[Node, int]:
        at = self._advance().at
        entries, depth = self._entries(self._expression)
        return MapLiteral(at, entries), depth

    def _entries(self, key: Callable[[], tuple[Any, int]]) -> tuple[tuple[Entry, ...], int]:
        """Up to and with the closing brace."""
        found, depth = [], 0
        while self._token.kind not in ("}", ","):
            is_optional = self._accept("?") is not None
            name, name_depth = key()
            colon = self._expect(":")
            value, value_depth = self._expression()
            found.append(Entry(colon.at, name, value, is_optional))
            depth = max(depth, name_depth, value_depth)
            if self._token.kind != "," or self._tokens[self._next + 1].kind in ("}", ","):
                break
            self._advance()
        self._accept(",")
        self._expect("}")
        return tuple(found), depth

    def _named(self) -> tuple[Node, int]:
        """A variable, the call of a function, or a message."""
        start = self._next
        dot = self._accept(".")
        name = self._expect("name")
        prefix = "." if dot is not None else ""
        if message := self._message_name(name.text):
            brace = self._advance()
            fields, depth = self._entries(self._field_name)
            return MessageLiteral(brace.at, prefix + message, fields), depth
        if name.text in _RESERVED:
            self.fail(name.at, f"reserved identifier: {name.text}")
        if self._token.kind != "(":
            return Name(self._tokens[start].at, prefix + name.text), 0
        opened = self._advance()
        arguments, depth = self._arguments()
        call = None if dot is not None else expand_global(self, opened.at, name.text, arguments)
        return call or Call(opened.at, prefix + name.text, None, arguments), depth

    def _message_name(self, first: str) -> str:
        """The qualified name before a brace, and on to that brace; empty if there is none."""
        names, ahead = [first], self._next
        while self._tokens[ahead].kind == "." and self._tokens[ahead + 1].kind == "name":
            names.append(self._tokens[ahead + 1].text)
            ahead += 2
        if self._tokens[ahead].kind != "{":
            return ""
        self._next = ahead
        return ".".join(names)

    def _field_name(self) -> tuple[str, int]:
        if self._token.kind == "quoted":
            self.fail(self._token.at, "unsupported syntax: '`'")
        return self._expect("name").text, 0


_NO_LITERAL: Final = object()


def _value_of(token: Token, *, is_negative: bool) -> Any:
    match token.kind:
        case "int":
            return literals.int_value(token.text, is_negative=is_negative)
        case "double":
            value = literals.double_value(token.text)
            return -value if is_negative else value
        case "uint":
            return literals.uint_value(token.text)
        case "string":
            return literals.string_value(token.text)
        case "bytes":
            return literals.bytes_value(token.text)
        case "true" | "false":
            return token.kind == "true"
        case "null":
            return None
    return _NO_LITERAL
