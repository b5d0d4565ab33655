"""Time, chance and talk come into the engine as arguments, so that it decides the same again."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
IMPURE: Final = {"asyncio", "datetime", "logging", "os", "secrets", "socket", "subprocess", "sys", "threading", "time"}
PURE_ROOMS: Final = ("trio_sched/objects", "trio_sched/snapshot", "trio_sched/plugin_api", "trio_sched/engine")
FILES: Final = [path for room in (*PURE_ROOMS, "plugins_builtin") for path in (ROOT / room).glob("*.py")]
MODULES: Final = sorted(path.relative_to(ROOT).as_posix() for path in FILES)
VALUES: Final = {"datetime.time", "datetime.timedelta"}
"""Types of the impure modules that are mere values: arguments of plugins may have them."""
FORMATS_MOMENTS: Final = "trio_sched/objects/timestamps.py"
"""The one module that knows what a moment is; which moment it is, it is given."""


def imports(module: str) -> Iterator[str]:
    """What *module* imports: modules, and ``module.name`` for names out of them."""
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", MODULES)
def test_nothing_that_waits_tells_the_time_or_talks(module: str) -> None:
    allowed = VALUES | ({"datetime.UTC", "datetime.datetime"} if module == FORMATS_MOMENTS else set())
    assert sorted(name for name in imports(module) if name.partition(".")[0] in IMPURE and name not in allowed) == []


def test_moments_are_formatted_without_a_clock() -> None:
    asked = {
        node.attr
        for node in ast.walk(ast.parse((ROOT / FORMATS_MOMENTS).read_text()))
        if isinstance(node, ast.Attribute)
    }
    assert asked.isdisjoint({"now", "utcnow", "today"})


@pytest.mark.parametrize("module", MODULES)
def test_chance_is_a_generator_that_is_passed_in(module: str) -> None:
    found = {name for name in imports(module) if name.partition(".")[0] in ("random", "numpy.random")}
    assert found <= {"random.Random"}
    assert "Random()" not in (ROOT / module).read_text()


def test_all_pure_rooms_are_looked_at() -> None:
    assert len(MODULES) > 50
