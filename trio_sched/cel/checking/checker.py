"""Finds out the static type of every part of an expression, and what does not fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import define, field, frozen

from trio_sched.cel.checking.declarations import Overload, functions
from trio_sched.cel.checking.environment import MESSAGES, TYPE_NAMES, Environment
from trio_sched.cel.errors import InvalidExpression, Issue
from trio_sched.cel.syntax.nodes import (
    Bind,
    Call,
    Comprehension,
    Constant,
    ListLiteral,
    Logical,
    MapLiteral,
    MessageLiteral,
    Name,
    Node,
    OptionalMap,
    Select,
)
from trio_sched.cel.syntax.recursion import deep_recursion
from trio_sched.cel.syntax.validation import differing_elements
from trio_sched.cel.values.types import (
    ANY,
    BOOL,
    BYTES,
    COMPARABLE,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Substitution,
    Type,
    list_of,
    map_of,
    more_general,
    optional_of,
    type_of,
)

_CONSTANTS: Final = {one.name: one for one in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL)}


@frozen(eq=False)
class Checked:
    """An expression whose types fit together."""

    root: Node
    type: Type
    types: Mapping[int, Type]
    """``id`` of every part → its type."""
    names: Mapping[int, str]
    """``id`` of names, selections and calls → the qualified name of the variable, type or function that it is."""
    overloads: Mapping[int, tuple[Overload, ...]]
    """``id`` of every call → the overloads that fit; likewise for ``sortBy``, whose keys decide."""


def check(source: str, root: Node, environment: Environment) -> Checked:
    """The types of *root*, which *source* was parsed into.

    Raises:
        InvalidExpression: something does not fit.
    """
    checker = _Checker(environment)
    with deep_recursion():
        checker.check(root)
    if checker.issues:
        raise InvalidExpression(source, checker.issues)
    types = {part: checker.known.resolved(found, free_is_dyn=True) for part, found in checker.types.items()}
    issues = {*differing_elements(root, types)}
    if issues:
        raise InvalidExpression(source, issues)
    return Checked(root, types[id(root)], types, checker.names, checker.overloads)


@define(eq=False)
class _Checker:
    environment: Environment
    known: Substitution = field(factory=Substitution)
    types: dict[int, Type] = field(factory=dict)
    names: dict[int, str] = field(factory=dict)
    overloads: dict[int, tuple[Overload, ...]] = field(factory=dict)
    issues: set[Issue] = field(factory=set)
    scopes: list[dict[str, Type]] = field(factory=list)
    """The variables of comprehensions and bindings, the innermost last."""
    _checks: dict[type, Callable[..., Type]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._checks = {
            Constant: lambda node: _CONSTANTS[node.kind],
            Name: self._name,
            Select: self._select,
            Call: self._call,
            Logical: self._logical,
            ListLiteral: self._list,
            MapLiteral: self._map,
            MessageLiteral: self._message,
            Comprehension: self._comprehension,
            Bind: self._bind,
            OptionalMap: self._optional_map,
        }

    def check(self, node: Node) -> Type:
        """The type of *node*; `ERROR` if it has none."""
        found = self.types[id(node)] = self._checks[type(node)](node)
        return found

    def fail(self, at: int, message: str) -> Type:
        """Note what is wrong."""
        self.issues.add(Issue(at, message))
        return ERROR

    # --- names ------------------------------------------------------------------------------------------------------

    def _name(self, node: Name) -> Type:
        found = self._variable(node.name) or TYPE_NAMES.get(node.name.removeprefix("."))
        if found is None and node.name.removeprefix(".") in self.environment.objects:
            found = type_of(Type(node.name.removeprefix(".")))
        if found is None:
            return self.fail(node.at, f"undeclared reference to '{node.name.removeprefix('.')}' (in container '')")
        self.names[id(node)] = node.name.removeprefix(".")
        return found

    def _variable(self, name: str) -> Type | None:
        bare = name.removeprefix(".")
        for scope in reversed(self.scopes):
            if bare in scope:
                return scope[bare]
        return self.environment.variables.get(bare)

    def _qualified(self, node: Node) -> str:
        """The dotted name that *node* is; empty if it is none."""
        parts: list[str] = []
        while isinstance(node, Select) and not node.tests and not node.is_optional:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Name):
            return ""
        return ".".join([node.name, *reversed(parts)])

    def _select(self, node: Select) -> Type:
        name = self._qualified(node).removeprefix(".")
        first = name.partition(".")[0]
        if name and self._variable(first) is None:
            named = TYPE_NAMES.get(name) or (type_of(Type(name)) if name in self.environment.objects else None)
            if named is not None:
                self.names[id(node)] = name
                return named
        operand = self.known.resolved(self.check(node.operand))
        is_optional = node.is_optional
        if operand.name == "optional_type":
            operand, is_optional = self.known.resolved(operand.parameters[0]), True
        found = self._field(node, operand)
        if node.tests:
            return BOOL
        return optional_of(found) if is_optional and found != ERROR else found

    def _field(self, node: Select, operand: Type) -> Type:
        if operand.name == "map":
            return operand.parameters[1]
        if operand in (DYN, ANY, ERROR) or operand.is_parameter:
            if operand.is_parameter:
                self.known.fits([DYN], [operand])
            return DYN if operand != ERROR else ERROR
        fields = self.environment.objects.get(operand.name)
        if fields is not None:
            return fields.get(node.field) or self.fail(node.at, f"undefined field '{node.field}'")
        if operand.name in ("wrapper", "list", "type") or operand in (*_CONSTANTS.values(), TIMESTAMP, DURATION):
            return self.fail(node.at, f"type '{self._written(operand)}' does not support field selection")
        return self.fail(node.at, f"unexpected failed resolution of '{operand.name}'")

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Type:
        name = node.function.removeprefix(".")
        if node.target is not None:
            namespace = self._qualified(node.target).removeprefix(".")
            qualified = f"{namespace}.{name}"
            if namespace and qualified in functions() and self._variable(namespace.partition(".")[0]) is None:
                return self._resolve(node, qualified, [*map(self.check, node.arguments)], is_method=False)
            target = self.check(node.target)
            arguments = [target, *map(self.check, node.arguments)]
            if name not in functions():
                return self.fail(node.at, f"undeclared reference to '{name}' (in container '')")
            return self._resolve(node, name, arguments, is_method=True)
        arguments = [*map(self.check, node.arguments)]
        if name not in functions():
            return self.fail(node.at, f"undeclared reference to '{name}' (in container '')")
        return self._resolve(node, name, arguments, is_method=False)

    def _resolve(self, node: Call, name: str, arguments: list[Type], *, is_method: bool) -> Type:
        """The type of a call; what fits several overloads with different results is dyn."""
        self.names[id(node)] = name
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in functions()[name]:
            found = self._result_of(overload, arguments, is_method=is_method)
            if found is None:
                continue
            fitting.append(overload)
            if result is None:
                result = found
            elif result != DYN and self.known.resolved(found) != self.known.resolved(result):
                result = DYN
        if result is not None:
            self.overloads[id(node)] = tuple(fitting)
            return self.known.resolved(result)
        given = [self._written(self.known.resolved(one, free_is_dyn=True)) for one in arguments]
        shown = f"{given[0]}.({', '.join(given[1:])})" if is_method else f"({', '.join(given)})"
        return self.fail(node.at, f"found no matching overload for '{name}' applied to '{shown}'")

    def _result_of(self, overload: Overload, arguments: list[Type], *, is_method: bool) -> Type | None:
        if overload.is_method is not is_method or len(overload.arguments) != len(arguments):
            return None
        if not overload.is_generic:
            return overload.result if self.known.fits(arguments, overload.arguments) else None
        wanted, result = self.known.instance(overload.arguments, overload.result)
        return result if self.known.fits(arguments, wanted) else None

    def _logical(self, node: Logical) -> Type:
        for operand in node.operands:
            self._expect(operand, self.check(operand), BOOL)
        return BOOL

    def _expect(self, node: Node, found: Type, wanted: Type) -> None:
        if not self.known.fits([found], [wanted]):
            shown = self._written(self.known.resolved(found, free_is_dyn=True))
            self.fail(node.at, f"expected type '{self._written(wanted)}' but found '{shown}'")

    def _written(self, one: Type) -> str:
        return str(self.known.resolved(one, free_is_dyn=True))

    # --- literals ---------------------------------------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for index, part in enumerate(node.elements):
            found = self.check(part)
            if index in node.optional:
                found = self._optional_value(part, found)
            element = self._joined(element, found)
        return list_of(self.known.new_parameter() if element is None else element)

    def _map(self, node: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            assert not isinstance(entry.key, str)
            key = self._joined(key, self.check(entry.key))
            found = self.check(entry.value)
            if entry.is_optional:
                found = self._optional_value(entry.value, found)
            value = self._joined(value, found)
        if key is None or value is None:
            return map_of(self.known.new_parameter(), self.known.new_parameter())
        return map_of(key, value)

    def _optional_value(self, part: Node, found: Type) -> Type:
        found = self.known.resolved(found)
        if found.name == "optional_type":
            return found.parameters[0]
        if found in (DYN, ANY, ERROR):
            return found
        shown = self._written(found)
        return self.fail(part.at, f"expected type 'optional_type({shown})' but found '{shown}'")

    def _joined(self, before: Type | None, found: Type) -> Type:
        """The type of the elements of a literal; `validation` finds fault with elements of different types."""
        if before is None:
            return found
        before, found = self.known.resolved(before), self.known.resolved(found)
        return more_general(before, found) if self.known.fits([before], [found]) else DYN

    def _message(self, node: MessageLiteral) -> Type:
        name = node.type_name.removeprefix(".")
        made, fields = MESSAGES.get(name, (Type(name), self.environment.objects.get(name)))
        if fields is None:
            return self.fail(node.at, f"undeclared reference to '{name}' (in container '')")
        for entry in node.fields:
            found = self.check(entry.value)
            assert isinstance(entry.key, str)
            wanted = fields.get(entry.key)
            if entry.is_optional:
                found = self._optional_value(entry.value, found)
            if wanted is None:
                self.fail(entry.at, f"undefined field '{entry.key}'")
            elif not self.known.fits([found], [wanted]):
                shown = f"'{self._written(wanted)}' but provided type is '{self._written(found)}'"
                self.fail(entry.at, f"expected type of field '{entry.key}' is {shown}")
        return made

    # --- macros -----------------------------------------------------------------------------------------------------

    def _comprehension(self, node: Comprehension) -> Type:
        over = self.known.resolved(self.check(node.over))
        first, second = self._elements(node, over)
        names = node.names
        scope = {names[0]: first} if len(names) == 1 else {names[0]: second, names[1]: first}
        if len(names) == 1 and over.name == "map":
            scope = {names[0]: over.parameters[0]}
        with_scope = self._inside(scope, (node.condition, node.body))
        condition, body = with_scope
        assert body is not None
        element = next(iter(scope.values()))
        result: Type
        match node.macro:
            case "all" | "exists":
                self._expect(node.body, body, BOOL)
                return BOOL
            case "exists_one":
                self._expect_condition(node, body, INT)
                return BOOL
            case "filter":
                result = list_of(element)
                self._expect_condition(node, body, result)
            case "map" | "transformList":
                result = list_of(body)
            case "transformMap":
                result = map_of(scope[names[0]], body)
            case "transformMapEntry":
                result = self._entries(node, body)
            case "sortBy":
                result = self._sorted(node, element, body)
        if condition is not None:
            self._expect_condition(node, condition, result)
        return result

    def _expect_condition(self, node: Comprehension, found: Type, result: Type) -> None:
        """The condition of the ternary that a macro stands for."""
        if not self.known.fits([found], [BOOL]):
            shown = ", ".join(self._written(one) for one in (found, result, result))
            self.fail(node.at, f"found no matching overload for '_?_:_' applied to '({shown})'")

    def _entries(self, node: Comprehension, body: Type) -> Type:
        entries = map_of(self.known.new_parameter(), self.known.new_parameter())
        if self.known.fits([body], [entries]):
            return self.known.resolved(entries)
        shown = f"({map_of(DYN, DYN)}, {self._written(body)})"
        return self.fail(node.at, f"found no matching overload for 'cel.@mapInsert' applied to '{shown}'")

    def _sorted(self, node: Comprehension, element: Type, key: Type) -> Type:
        comparable = [one for one in COMPARABLE if self.known.fits([key], [one])]
        if comparable:
            elements = list_of(self.known.resolved(element))
            self.overloads[id(node)] = tuple(Overload(True, (elements, list_of(one)), elements) for one in comparable)
            return elements
        shown = f"{self._written(list_of(element))}.({self._written(list_of(key))})"
        return self.fail(node.at, f"found no matching overload for '@sortByAssociatedKeys' applied to '{shown}'")

    def _elements(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        """The types of the values, and of the indices or keys."""
        if over.name == "list":
            return over.parameters[0], INT
        if over.name == "map":
            return over.parameters[1], over.parameters[0]
        if over.is_parameter:
            self.known.fits([DYN], [over])
        elif over not in (DYN, ERROR):
            shown = self._written(over)
            problem = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self.fail(node.over.at, f"expression of type '{shown}' {problem}")
            return ERROR, ERROR
        return DYN, DYN

    def _inside(self, scope: dict[str, Type], parts: Iterable[Node | None]) -> list[Type | None]:
        self.scopes.append(scope)
        found = [None if part is None else self.check(part) for part in parts]
        self.scopes.pop()
        return found

    def _bind(self, node: Bind) -> Type:
        value = self.check(node.value)
        (body,) = self._inside({node.name: value}, [node.body])
        assert body is not None
        return body

    def _optional_map(self, node: OptionalMap) -> Type:
        target = self.known.resolved(self.check(node.target))
        inner = DYN
        if target.name == "optional_type":
            inner = target.parameters[0]
        elif target not in (DYN, ANY, ERROR):
            shown = self._written(target)
            self.fail(node.at, f"found no matching overload for 'hasValue' applied to '{shown}.()'")
        (body,) = self._inside({node.name: inner}, [node.body])
        assert body is not None
        if not node.is_flat:
            return optional_of(body)
        result = optional_of(self.known.new_parameter())
        if self.known.fits([body], [result]):
            return self.known.resolved(result)
        shown = f"(bool, {self._written(body)}, {optional_of(DYN)})"
        return self.fail(node.at, f"found no matching overload for '_?_:_' applied to '{shown}'")
