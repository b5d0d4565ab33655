"""Time, chance and talk come into the engine as arguments, so that it decides the same again."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
IMPURE: Final = {"asyncio", "datetime", "logging", "os", "secrets", "socket", "subprocess", "sys", "threading", "time"}
PURE_ROOMS: Final = ("trio_sched/objects", "trio_sched/snapshot", "trio_sched/plugin_api", "trio_sched/engine")
FILES: Final = [path for room in (*PURE_ROOMS, "plugins_builtin") for path in (ROOT / room).rglob("*.py")]
MODULES: Final = sorted(path.relative_to(ROOT).as_posix() for path in FILES)
VALUES: Final = {"datetime.time", "datetime.timedelta", "sys.getrefcount"}
"""Types of the impure modules that are mere values: arguments of plugins may have them; and what decides nothing but
whether parts are forgotten that no object has any more."""
FORMATS_MOMENTS: Final = "trio_sched/objects/timestamps.py"
"""The one module that knows what a moment is; which moment it is, it is given."""


def imports(module: str) -> Iterator[str]:
    """What *module* imports: modules, and ``module.name`` for names out of them."""
    for node in ast.walk(ast.parse((ROOT / module).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_waits_tells_the_time_or_talks() -> None:
    found = {(module, name) for module in MODULES for name in imports(module) if name.partition(".")[0] in IMPURE}
    of_moments = {(FORMATS_MOMENTS, name) for name in ("datetime.UTC", "datetime.datetime")}
    assert sorted(one for one in found - of_moments if one[1] not in VALUES) == []


def test_moments_are_formatted_without_a_clock() -> None:
    asked = {
        node.attr
        for node in ast.walk(ast.parse((ROOT / FORMATS_MOMENTS).read_text()))
        if isinstance(node, ast.Attribute)
    }
    assert asked.isdisjoint({"now", "utcnow", "today"})


def test_chance_is_a_generator_that_is_passed_in() -> None:
    modules = ("random", "numpy.random")
    found = {(module, name) for module in MODULES for name in imports(module) if name.partition(".")[0] in modules}
    assert sorted(one for one in found if one[1] != "random.Random") == []
    assert [module for module in MODULES if "Random()" in (ROOT / module).read_text()] == []


def test_all_pure_rooms_are_looked_at() -> None:
    assert len(MODULES) > 50
