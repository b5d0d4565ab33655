"""Type checkers see hooks with wrong types in classes that inherit from ExtensionPoints, which changes nothing else."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from trio.testing import MockClock

from trio_sched.engine.registry.likely_mistakes import likely_mistakes
from trio_sched.engine.registry.plugin_registry import hooks_of
from trio_sched.plugin_api import (
    CycleState,
    ExtensionPoints,
    Handle,
    Input,
    NodeColumns,
    NodeView,
    Pod,
    Status,
    Verdicts,
    hookimpl,
    unschedulable,
)
from trio_sched.testing import check_conformance, node, pod, schedule, virtual_cluster

ROOT = Path(__file__).parents[2]
CODE = """\
from trio_sched.plugin_api import CycleState, ExtensionPoints, Handle, NodeView, Pod, Status, hookimpl


class Typed(ExtensionPoints):
    name = "Typed"
    watches = ("Namespace",)
    writes = {"Pod": ("patch",)}

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle

    @hookimpl
    async def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        return None

    @hookimpl
    def score_node(self, pod: Pod, node: NodeView, state: CycleState) -> int:
        return 1

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> None: ...
"""


def errors_of(folder: Path, code: str) -> list[str]:
    (folder / "typed.py").write_text(code)
    cache = ROOT / ".mypy_cache" / "typed_hooks"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), "--config-file=", "typed.py"]
    done = subprocess.run(command, cwd=folder, env={"MYPYPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("typed.py:")]


def test_mypy_sees_hooks_that_return_or_take_something_else(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert errors_of(tmp_path, CODE) == []
    wrong = CODE.replace("-> int:\n        return 1", "-> float:\n        return 0.5")
    wrong = wrong.replace("def reserve(self, pod: Pod", "def reserve(self, pod: str").replace('("Namespace",)', "(3,)")
    found = "\n".join(errors_of(tmp_path, wrong))
    assert 'Return type "float" of "score_node" incompatible with return type "int"' in found
    assert 'Argument 1 of "reserve" is incompatible with supertype' in found
    assert '(expression has type "tuple[int]", base class "ExtensionPoints" defined the type as' in found


class Inherits(ExtensionPoints):
    name = "Inherits"
    depends_on = frozenset({Input.NODE})

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle

    @hookimpl
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        return Verdicts.where(np.array([name != "a" for name in nodes.names]), unschedulable("a"))


class InheritsAndForgets(ExtensionPoints):
    name = "InheritsAndForgets"

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle

    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return None

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> None: ...


async def test_a_plugin_that_inherits_has_its_own_hooks_only(autojump_clock: MockClock) -> None:
    assert hooks_of(Inherits) == ["filter"]
    (problem,) = likely_mistakes(Inherits)
    assert "depends_on has no effect without the hook sign" in problem
    (problem,) = likely_mistakes(InheritsAndForgets)
    assert "InheritsAndForgets.filter_node has the name of a hook, but is not marked" in problem
    check_conformance(type("Inherits", (Inherits,), {"depends_on": None}))
    schedule(pod("p"), on=[node("a"), node("b")], plugins=[Inherits]).assert_scheduled(on="b")
    async with virtual_cluster(nodes=[node("a"), node("b")], plugins=[Inherits]) as cluster:
        await cluster.create(pod("p"))
        assert await cluster.wait_scheduled("p") == "b"
