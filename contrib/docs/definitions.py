"""What the public modules define: classes with their members, functions and constants, read from the source.

Python itself keeps neither the order of members nor the texts below attributes.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Final

from attrs import frozen

_ENUMS: Final = {"Enum", "IntEnum", "IntFlag"}
_WIDTH: Final = 100
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Attribute:
    """An attribute or a property."""

    name: str
    type: str
    """Empty for the members of an enum, and where it is not annotated."""
    value: str
    """Its default, or the value of a constant; empty if there is none."""
    text: str


@frozen
class Method:
    """A method or a function."""

    name: str
    signatures: tuple[str, ...]
    """One, or several of an overloaded one."""
    text: str


@frozen
class Class:
    """A class with its public members, and those of bases that are not public themselves."""

    name: str
    bases: tuple[str, ...]
    text: str
    attributes: tuple[Attribute, ...]
    methods: tuple[Method, ...]


Definition = Class | Method | Attribute


@frozen
class _Source:
    module: str
    nodes: dict[str, list[ast.stmt]]
    """The definitions of each name; an overloaded function has several."""
    texts: dict[str, str]
    """The texts of assignments."""
    imports: dict[str, str]
    """Name → module."""


@cache
def _source(module: str) -> _Source:
    tree = ast.parse(inspect.getsource(import_module(module)))
    nodes: dict[str, list[ast.stmt]] = {}
    imports: dict[str, str] = {}
    statements = list(_statements(tree.body))
    for node in statements:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                nodes.setdefault(node.name, []).append(node)
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                nodes.setdefault(name, []).append(node)
            case ast.ImportFrom(module=str(origin)):
                imports |= {alias.asname or alias.name: origin for alias in node.names}
    return _Source(module, nodes, _texts_below(statements), imports)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):  # TYPE_CHECKING, or what need not be installed
            yield from node.body
        else:
            yield node


def _texts_below(body: Iterable[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node, below in pairwise(body):
        name = _target(node)
        if name and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[name] = inspect.cleandoc(str(below.value.value))
    return found


def _target(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            return name
        case ast.Assign(targets=[ast.Attribute(ast.Name("self"), name)]):
            return name
        case ast.AnnAssign(target=ast.Attribute(ast.Name("self"), name)):
            return name
    return ""


def define(module: str, name: str) -> Definition:
    """What *name* is in *module*, or where that has it from.

    Raises:
        LookupError: there is no such name.
    """
    source = _source(module)
    nodes = source.nodes.get(name)
    if nodes is None:
        if name not in source.imports:
            raise LookupError(f"{module} does not define {name}")
        return define(source.imports[name], name)
    match nodes[-1]:
        case ast.ClassDef() as node:
            return _class(source, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _method(name, [one for one in nodes if isinstance(one, _Function)])
        case node:
            return _attribute(name, node, source.texts.get(name, ""))


def _class(source: _Source, node: ast.ClassDef) -> Class:
    bases = tuple(ast.unparse(base) for base in node.bases)
    attributes: dict[str, Attribute] = {}
    methods: dict[str, list[_Function]] = {}
    for owner in [*_hidden_bases(source, node), node]:
        is_enum = bool(_ENUMS & {ast.unparse(base) for base in owner.bases})
        texts = _texts_below(owner.body)
        for member in owner.body:
            if isinstance(member, _Function):
                if member.name == "__init__":
                    attributes |= _of_constructor(member)
                    methods.pop(member.name, None)
                if any(ast.unparse(mark).endswith(".setter") for mark in member.decorator_list):
                    continue
                if _is_property(member):
                    attributes[member.name] = _property(member)
                elif not member.name.startswith("_") or (member.name == "__init__" and ast.get_docstring(member)):
                    methods.setdefault(member.name, []).append(member)
            elif (name := _target(member)) and not name.startswith("_"):
                attributes[name] = _attribute(name, member, texts.get(name, ""), is_plain=not is_enum)
    public = {name: one for name, one in attributes.items() if not name.startswith("_")}
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    made = tuple(_method(name if name != "__init__" else node.name, found) for name, found in methods.items())
    return Class(node.name, bases, text, tuple(public.values()), made)


_WITH_HIDDEN_BASES: Final = (
    "trio_sched.testing",
    "trio_sched.objects.metadata",
    "trio_sched.objects.pod_groups.pod_group",
)
"""Modules with classes that only others are made of."""


def _hidden_bases(source: _Source, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0]
        module = source.imports.get(name, source.module if name in source.nodes else "")
        if not module.startswith(_WITH_HIDDEN_BASES):
            continue
        found = _source(module)
        definition = found.nodes[name][-1]
        assert isinstance(definition, ast.ClassDef)
        yield from _hidden_bases(found, definition)
        yield definition


def _of_constructor(function: _Function) -> dict[str, Attribute]:
    """The attributes that a constructor sets and describes."""
    texts = _texts_below(function.body)
    return {
        name: _attribute(name, node, texts[name], is_plain=False)
        for node in function.body
        if (name := _target(node)) in texts
    }


def _is_property(function: _Function) -> bool:
    return any(ast.unparse(one) in ("property", "cached_property") for one in function.decorator_list)


def _property(function: _Function) -> Attribute:
    type_ = ast.unparse(function.returns) if function.returns else ""
    return Attribute(function.name, _plain(type_), "", inspect.cleandoc(ast.get_docstring(function) or ""))


def _attribute(name: str, node: ast.stmt, text: str, *, is_plain: bool = True) -> Attribute:
    type_ = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    shown = _value(value) if is_plain or isinstance(value, ast.Constant) else ""
    type_ = _plain(type_)
    type_ = type_.removeprefix("Final[").removesuffix("]") if type_.startswith("Final[") else type_
    return Attribute(name, "" if type_ == "Final" else type_, shown, text)


def _value(node: ast.expr | None) -> str:
    """A default, if it is short enough to be shown."""
    match node:
        case None:
            return ""
        case ast.Call(func=ast.Name("field")):
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            return _value(given["default"]) if "default" in given else "…" if "factory" in given else ""
        case ast.Call(func=ast.Attribute(attr="field")):
            return "…"
    text = _quoted(ast.unparse(node))
    return text if len(text) <= 40 else "…"


def _method(name: str, nodes: list[_Function]) -> Method:
    overloads = [one for one in nodes if any(ast.unparse(mark) == "overload" for mark in one.decorator_list)]
    described = nodes[-1]
    text = inspect.cleandoc(ast.get_docstring(described) or "")
    return Method(name, tuple(_signature(name, one) for one in overloads or [described]), text)


def _signature(name: str, node: _Function) -> str:
    marks = [f"@{ast.unparse(one)}\n" for one in node.decorator_list if ast.unparse(one) in ("classmethod",)]
    is_manager = any(ast.unparse(one) == "asynccontextmanager" for one in node.decorator_list)
    start = "async with" if is_manager else "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    arguments = _without_receiver(node.args)
    returns = "" if node.returns is None or is_manager or node.name == "__init__" else ast.unparse(node.returns)
    end = f") -> {_plain(returns)}" if returns else ")"
    line = f"{start} {name}({', '.join(arguments)}{end}"
    if len(line) > _WIDTH:
        line = f"{start} {name}(\n" + "".join(f"    {one},\n" for one in arguments) + end
    return "".join(marks) + line


def _without_receiver(arguments: ast.arguments) -> list[str]:
    """Each as it is written, without self and cls."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    shown: list[str] = []
    for index, (one, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        if one.arg not in ("self", "cls"):
            shown.append(_argument(one, default))
        if index == len(arguments.posonlyargs) and shown:
            shown.append("/")
    if arguments.vararg:
        shown.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    shown += [_argument(one, default) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return [*shown, f"**{_argument(arguments.kwarg, None)}"] if arguments.kwarg else shown


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    type_ = "" if one.annotation is None else f": {_plain(ast.unparse(one.annotation))}"
    if default is None:
        return f"{one.arg}{type_}"
    value = _quoted(ast.unparse(default))
    return f"{one.arg}{type_} = {value}" if type_ else f"{one.arg}={value}"


def _plain(annotation: str) -> str:
    if "Literal" in annotation:
        return _quoted(annotation)
    return annotation.replace("'", "").replace("typing.", "")


def _quoted(code: str) -> str:
    """*code* with double quotes around its texts."""
    return code if '"' in code else code.replace("'", '"')
