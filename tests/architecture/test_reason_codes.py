"""The codes of causes are stable: the page of them lists exactly those that the code can give."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contrib.docs.make_causes import REASONS

ROOT: Final = Path(__file__).parents[2]
DATA: Final = "trio_sched/explanation/data.py"
CODE: Final = re.compile(r"[A-Z][a-zA-Z]+")
Scope = ast.Module | ast.FunctionDef


def literals(expression: ast.expr, module: ast.Module) -> Iterator[str]:
    """The codes that *expression* may give: constants of it and of the module's tables, the name of a plugin as …."""
    if isinstance(expression, ast.IfExp):
        yield from literals(expression.body, module)
        yield from literals(expression.orelse, module)
    elif isinstance(expression, ast.BoolOp):
        for one in expression.values:
            yield from literals(one, module)
    elif isinstance(expression, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in expression.values)
    elif isinstance(expression, ast.Constant):
        assert CODE.fullmatch(str(expression.value)), ast.dump(expression)
        yield str(expression.value)
    elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):  # TABLE.get(key, default)
        table = next(value for name, value in assigned(module) if name == ast.unparse(expression.func.value))
        assert isinstance(table, ast.Dict), ast.dump(expression)
        for one in (*table.values, *expression.args[1:]):
            yield from literals(one, module)
    else:
        raise AssertionError(f"it is not known which codes {ast.unparse(expression)} gives")


def assigned(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    for one in ast.walk(scope):
        if isinstance(one, ast.AnnAssign) and one.value is not None:
            yield ast.unparse(one.target), one.value
        elif isinstance(one, ast.Assign):
            for target in one.targets:
                if isinstance(target, ast.Tuple) and isinstance(one.value, ast.Tuple):
                    yield from zip(map(ast.unparse, target.elts), one.value.elts, strict=True)
                else:
                    yield ast.unparse(target), one.value


def reasons_of(module: ast.Module) -> Iterator[str]:
    """The codes of all clauses that *module* makes."""
    functions = [one for one in ast.walk(module) if isinstance(one, ast.FunctionDef)]
    for function in functions:
        for call in calls(function, "Clause"):
            (reason,) = (one.value for one in call.keywords if one.arg == "reason")
            yield from given(reason, function, module)


def given(reason: ast.expr, function: ast.FunctionDef, module: ast.Module) -> Iterator[str]:
    if not isinstance(reason, ast.Name):
        yield from literals(reason, module)
        return
    names = [one.arg for one in function.args.args]
    if reason.id in names:
        position = names.index(reason.id)
        for caller in (one for one in ast.walk(module) if isinstance(one, ast.FunctionDef)):
            for call in calls(caller, function.name):
                yield from given(call.args[position], caller, module)
    else:
        found = [value for name, value in assigned(function) if name == reason.id]
        assert found, f"{reason.id} in {function.name}"
        for value in found:
            yield from literals(value, module)


def calls(scope: Scope, name: str) -> Iterator[ast.Call]:
    for one in ast.walk(scope):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == name:
            yield one


def codes_of_the_code() -> set[str]:
    found: set[str] = set()
    for folder in ("plugins_builtin", "trio_sched/explanation"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "Clause(" in text:
                found.update(reasons_of(ast.parse(text)))
    data = ast.parse((ROOT / DATA).read_text(encoding="utf-8"))  # what is said where no requirement is the cause
    (without_clause,) = (one for one in ast.walk(data) if isinstance(one, ast.FunctionDef) and one.name == "_reason")
    for one in ast.walk(without_clause):
        if isinstance(one, ast.Return) and one.value is not None:
            found.update(literals(one.value, data))
    return found


def test_the_page_of_causes_lists_exactly_the_codes_that_the_code_gives() -> None:
    listed = [code for reasons in REASONS.values() for code in reasons]
    assert len(listed) == len(set(listed))
    assert set(listed) == codes_of_the_code()
