"""Finds everything that some objects lead to, with the chain of attributes, entries and tasks that leads there."""

import gc
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
import numpy as np
import trio
from attrs import define

from contrib.soak.census import attributes_of

_LEAVES = (int, float, complex, type, types.ModuleType, types.CodeType, types.BuiltinFunctionType, np.dtype)
_RUNNING = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType, types.FrameType)
_CODE_NAMES = ("cr_code", "gi_code", "ag_code", "f_code")
_MODULES_OF_OTHERS = ("trio_sched.simulator", "trio_sched.testing", "_pytest", "pytest", "pytest_trio", "hypothesis")
_FILES_OF_OTHERS = ("/trio_sched/simulator/", "/trio_sched/testing/", "/tests/", "/_pytest/", "/pytest_trio/")


@define(eq=False)  # not frozen, which would take three times as long to make, and there are a million
class Held:
    """An object, and how it is reached: what holds it, what holds that, and so on."""

    value: Any
    name: str
    holder: "Held | None"

    def __str__(self) -> str:
        names: list[str] = []
        one: Held | None = self
        while one is not None:
            names.append(one.name)
            one = one.holder
        return "".join(reversed(names))


def scheduler_roots() -> dict[str, object]:
    """All tasks of this run, and what the modules of the scheduler hold; those of the simulator and tests left out."""
    found: dict[str, object] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(("trio_sched.", "plugins_builtin.")) and not name.startswith(_MODULES_OF_OTHERS):
            found |= {f"{name}.{attribute}": value for attribute, value in vars(module).items()}
    tasks = [trio.lowlevel.current_root_task()]
    while tasks:
        task = tasks.pop()
        assert task is not None
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        found[f"task {task.name}"] = task
    return found


def reachable(roots: Mapping[str, object]) -> Iterator[Held]:
    """Everything that *roots* lead to, the nearest first, texts and bytes as well.

    What belongs to the simulator, to tests and to the test runner is not entered.
    """
    seen: dict[int, object] = {}  # keeps them alive, so that an id stays that of one object
    waiting: deque[Held] = deque()

    def note(held: Held | None, names: Iterable[tuple[str, object]]) -> None:
        for name, value in names:
            if value is None or id(value) in seen or isinstance(value, _LEAVES) or _is_of_others(value):
                continue
            seen[id(value)] = value
            waiting.append(Held(value, name, held))

    note(None, roots.items())
    while waiting:
        held = waiting.popleft()
        yield held
        note(held, _referents(held.value))


def _is_of_others(one: object) -> bool:
    if isinstance(one, types.FunctionType):
        return one.__module__ is not None and one.__module__.startswith(_MODULES_OF_OTHERS)
    if isinstance(one, _RUNNING):
        (code,) = (getattr(one, name) for name in _CODE_NAMES if hasattr(one, name))
        return any(folder in code.co_filename for folder in _FILES_OF_OTHERS)
    return _is_type_of_others(type(one))


@cache
def _is_type_of_others(kind: type[Any]) -> bool:
    return kind.__module__.startswith(_MODULES_OF_OTHERS)


def _referents(one: Any) -> Iterable[tuple[str, object]]:
    if isinstance(one, str | bytes | bytearray):
        return ()
    if isinstance(one, msgspec.Struct):  # most are unknown to the garbage collector
        return [(f".{name}", getattr(one, name)) for name in one.__struct_fields__]
    if isinstance(one, dict):
        entries = list(one.items())
        return [*((f"[{_shown(key)}]", value) for key, value in entries), *(("[key]", key) for key, _ in entries)]
    if isinstance(one, list | tuple | deque | set | frozenset):
        return [("[]", value) for value in list(one)]  # in one step: threads append to some
    if isinstance(one, np.ndarray):
        return [("[]", value) for value in one.flat] if one.dtype == object else [(".base", one.base)]
    if isinstance(one, types.FunctionType):
        cells = [cell.cell_contents for cell in one.__closure__ or () if _is_filled(cell)]
        return [(".closure", value) for value in (*cells, *(one.__defaults__ or ()))]
    if isinstance(one, trio.lowlevel.Task):
        return [(".coro", one.coro), (".custom_sleep_data", one.custom_sleep_data), (".context", one.context)]
    if isinstance(one, trio.Nursery):
        return [(".child_tasks", one.child_tasks), (".pending", one._pending_excs)]
    if isinstance(one, BaseException):
        return [*((name, getattr(one, name)) for name in ("args", "__cause__", "__context__", "__traceback__"))]
    if isinstance(one, _RUNNING):
        return [(f" in {_code_name(one)}", value) for value in gc.get_referents(one) if not _is_namespace(value)]
    names = {id(value): f".{name}" for name, value in attributes_of(one)}
    return [(names.get(id(value), f".<{type(one).__name__}>"), value) for value in gc.get_referents(one)]


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_namespace(value: object) -> bool:
    return isinstance(value, dict) and "__builtins__" in value


def _code_name(one: Any) -> str:
    for attribute in _CODE_NAMES:
        code = getattr(one, attribute, None)
        if code is not None:
            return str(code.co_qualname)
    return "?"


def _shown(key: object) -> str:
    return f"{str(key)[:40]}" if isinstance(key, str | int) else type(key).__name__
