"""Compiles a checked expression: every part becomes one Python closure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import define, field

from trio_sched.cel.checking.checker import Checked
from trio_sched.cel.checking.declarations import functions
from trio_sched.cel.errors import Aborted, EvaluationError
from trio_sched.cel.planning.calls import Fixed, binary, call, not_instantiated
from trio_sched.cel.planning.comprehensions import QUANTIFIERS, Loop, sort_by
from trio_sched.cel.planning.membership import membership
from trio_sched.cel.planning.steps import (
    differs,
    equals,
    equals_text,
    logical,
    map_of_entries,
    message,
    optional_list,
    or_else,
    plain_list,
)
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import (
    KEYS,
    Qualifier,
    Step,
    Variable,
    branch,
    chain,
    present,
    read_again,
    reread,
    tested,
)
from trio_sched.cel.runtime.costs import cost_of, equality_cost, inequality_cost
from trio_sched.cel.runtime.operators import ARITHMETIC, ORDER
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
from trio_sched.cel.values.values import NONE, Failed, Optional, TypeValue, Uint, Value, go_type

_SELECTIONS: Final = frozenset({"_[_]", "_[?_]"})
_CHAINS: Final = _SELECTIONS | {"_?_:_"}
_TYPES: Final = frozenset(
    {
        *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"),
        *("google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.Empty", "net.IP", "net.CIDR"),
    }
)
"""Names of types that are values; the checker finds more of them."""
_UNSET: Final = object()


@define(eq=False)
class Planner:
    """Makes closures of the parts of one expression."""

    checked: Checked
    slots: int
    """How many variables there are at the same time, at most."""
    scopes: list[dict[str, Step]] = field(factory=list)
    """Names → what evaluates them, without cost; the variables of the environment first."""
    depth: int = 0
    deepest: int = 0

    def plan(self, node: Node, *, in_branch: bool = False) -> Step:
        """The closure of *node*; *in_branch* if it is directly a branch of ``?:``.

        Raises:
            CompileError: it cannot be evaluated, whatever for.
        """
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        step = self._plan(node, in_branch)
        self.depth -= 1
        return step

    def _plan(self, node: Node, in_branch: bool) -> Step:
        match node:
            case Constant():
                return Fixed(Uint(node.value) if node.kind == "uint" else node.value)
            case Name():
                return self._chain(node, [], in_branch)
            case Select():
                return (
                    self._type(self.checked.names[id(node)])
                    if id(node) in self.checked.names
                    else self._chain(node, [], in_branch)
                )
            case Call():
                return self._call(node, in_branch)
            case Logical():
                return logical(node.function == "_||_", [self.plan(operand) for operand in node.operands])
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case MessageLiteral():
                return self._message(node)
            case Comprehension():
                return self._comprehension(node)
            case Bind():
                return self._bind(node.name, self.plan(node.value), node.body)
            case OptionalMap():
                return self._optional_map(node)

    # --- names and selections ---------------------------------------------------------------------------------------

    def _variable(self, name: str) -> Step | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _type(self, name: str) -> Step:
        if name not in _TYPES:
            raise not_instantiated(f"reference to undefined type: {name}")
        return Fixed(TypeValue(name))

    def _chain(self, node: Node, qualifiers: Sequence[Qualifier], in_branch: bool) -> Step:
        """*node* with what is selected from it, which is evaluated as one."""
        match node:
            case Name():
                variable = self._variable(node.name.removeprefix("."))
                if variable is not None:
                    return chain(variable, qualifiers, in_branch=in_branch)
                fixed = self._type(self.checked.names[id(node)])
                return chain(fixed, qualifiers, in_branch=in_branch) if qualifiers else fixed
            case Select() if id(node) not in self.checked.names:
                return self._chain(
                    node.operand,
                    [Qualifier(node.field, is_optional=node.is_optional, tests=node.tests), *qualifiers],
                    in_branch,
                )
            case Call() if node.function in _SELECTIONS:
                holder, key = node.arguments
                return self._chain(holder, [self._index(key, node.function == "_[?_]"), *qualifiers], in_branch)
            case Call() if node.function == "_?_:_" and qualifiers:
                condition, chosen, other = node.arguments
                parts = (self._chain(part, qualifiers, True) for part in (chosen, other))
                step = branch(self.plan(condition), *parts)
                return tested(step) if qualifiers[-1].tests and not in_branch else step
            case OptionalMap() if qualifiers:
                step = chain(self.plan(node), qualifiers, in_branch=True)
                return tested(step) if qualifiers[-1].tests and not in_branch else step
        if not qualifiers:
            return self.plan(node, in_branch=in_branch)
        return chain(self.plan(node), qualifiers, in_branch=in_branch)

    def _index(self, key: Node, is_optional: bool) -> Qualifier:
        step = self.plan(key, in_branch=True)
        if not isinstance(step, Fixed):
            return Qualifier(step=step, is_optional=is_optional)
        if type(step.value) not in KEYS:
            raise not_instantiated(f"invalid qualifier type: {go_type(step.value)}")
        return Qualifier(step.value, is_optional=is_optional)

    # --- operators and functions ------------------------------------------------------------------------------------

    def _call(self, node: Call, in_branch: bool) -> Step:
        if node.function in _SELECTIONS:
            return self._chain(node, [], in_branch)
        name = self.checked.names[id(node)]
        is_method = node.target is not None and name == node.function.removeprefix(".")
        parts = (node.target, *node.arguments) if node.target is not None and is_method else node.arguments
        if name == "_?_:_":
            condition, chosen, other = parts
            decided = self.plan(condition)
            return branch(decided, self._branch(chosen), self._branch(other))
        steps = [self.plan(part) for part in parts]
        overloads = self.checked.overloads[id(node)]
        if name == "@in" and len(overloads) == 1 and overloads[0].arguments[1].name == "list":
            found = membership(*steps)
            if found is not None:
                return found
        if name in ("or", "orValue") and is_method:
            return or_else(*steps, unwraps=name == "orValue")
        match name:
            case "_==_":
                if isinstance(steps[1], Fixed) and type(steps[1].value) is str:
                    return equals_text(steps[0], steps[1].value)
                return binary(equals, equality_cost, *steps)
            case "_!=_":
                return binary(differs, inequality_cost, *steps)
            case _ if name in ARITHMETIC or name in ORDER:
                operator = ARITHMETIC.get(name) or ORDER[name]
                return binary(operator, cost_of(name, overloads), *steps)
        return call(name, overloads, steps)

    def _branch(self, node: Node) -> Step:
        """A branch of ``?:``."""
        step = self.plan(node, in_branch=True)
        is_chain = isinstance(node, Name | Select) or (isinstance(node, Call) and node.function in _CHAINS)
        may_be_optional = self.checked.types[id(node)].name in ("optional_type", "dyn", "any")
        return reread(step) if may_be_optional and not is_chain else step

    # --- literals ---------------------------------------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Step:
        steps = [self.plan(element) for element in node.elements]
        step = plain_list(steps)
        if node.optional:
            step = optional_list([(step, index in node.optional) for index, step in enumerate(steps)])
        return _folded(step) if all(isinstance(one, Fixed) for one in steps) else step

    def _map(self, node: MapLiteral) -> Step:
        parts: list[tuple[Step, Step, bool]] = []
        for entry in node.entries:
            assert not isinstance(entry.key, str)
            parts.append((self.plan(entry.key), self.plan(entry.value), entry.is_optional))
        step = map_of_entries(parts)
        is_fixed = all(isinstance(one, Fixed) for key, value, _is_optional in parts for one in (key, value))
        return _folded(step) if is_fixed else step

    def _message(self, node: MessageLiteral) -> Step:
        parts = [(str(entry.key), self.plan(entry.value), entry.is_optional) for entry in node.fields]
        return message(node.type_name.removeprefix("."), parts)

    # --- macros -----------------------------------------------------------------------------------------------------

    def _new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _inside(self, names: Iterable[tuple[str, Step]], *parts: Node | None) -> list[Step | None]:
        self.scopes.append(dict(names))
        steps = [None if part is None else self.plan(part) for part in parts]
        self.scopes.pop()
        return steps

    def _comprehension(self, node: Comprehension) -> Step:
        over = self.plan(node.over)
        slots = tuple(self._new_slot() for _name in node.names)
        names = zip(node.names, map(Variable, slots), strict=True)
        condition, body = self._inside(names, node.condition, node.body)
        assert body is not None
        if node.macro == "sortBy":
            is_known = len(self.checked.overloads[id(node)]) == 1
            return sort_by(over, (self._new_slot(), slots[0]), body, is_cost_known=is_known)
        return QUANTIFIERS[node.macro](Loop(over, slots, body, condition))

    def _bind(self, name: str, value: Step, body: Node) -> Step:
        slot = self._new_slot()

        def bound(activation: Activation) -> Value:
            found = activation.values[slot]
            if found is _UNSET:
                try:
                    found = activation.values[slot] = activation.growing(value(activation))
                except EvaluationError as error:
                    activation.values[slot] = Failed(str(error))
                    raise
            elif type(found) is Failed:
                raise EvaluationError(found.problem)
            return found

        (step,) = self._inside([(name, bound)], body)
        assert step is not None
        inner = step

        def binding(activation: Activation) -> Value:
            activation.values[slot] = _UNSET
            result = inner(activation)
            return list(result) if activation.grows(result) else result

        return binding

    def _optional_map(self, node: OptionalMap) -> Step:
        target = self.plan(node.target)

        def unwrapped(activation: Activation) -> Value:
            activation.cost += 1
            found = target(activation)
            if type(found) is not Optional or found.is_none:
                raise EvaluationError("optional.none() dereference")
            return present(found)

        body = self._bind(node.name, unwrapped, node.body)
        flat = reread(body)
        has_value = call("hasValue", functions()["hasValue"], [target])

        def mapped(activation: Activation) -> Value:
            if not has_value(activation):
                activation.cost += 1
                return NONE
            if node.is_flat:
                return flat(activation)
            activation.cost += 1
            return read_again(Optional(body(activation)))

        return mapped


def _folded(step: Step) -> Step:
    """A literal whose parts are all constant: it costs nothing, not even if it cannot be made.

    Raises:
        CompileError: a map has a key that the original cannot take.
    """
    try:
        return Fixed(step(Activation(0)))
    except Aborted as error:
        raise not_instantiated(error) from error
    except EvaluationError as error:
        problem = str(error)

    def failed(_activation: Activation) -> Value:
        raise EvaluationError(problem)

    return failed
