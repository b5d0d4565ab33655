"""Docstrings say a fact by themselves: none goes on with a sentence that a name, or the text before it, began."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENTS = frozenset({"Also", "And", "Besides", "Else", "Likewise", "Of", "Otherwise", "Whose"})


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every text that stands alone, as docstrings do, those of fields and constants too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def test_no_docstring_is_a_fragment() -> None:
    files = [path for room in ("trio_sched", "plugins_builtin", "contrib") for path in (ROOT / room).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in files
        for line, text in _docstrings(ast.parse(path.read_text()))
        if (text.split() or [""])[0].rstrip(",:;.") in FRAGMENTS
    ]
    assert len(files) > 500
    assert found == []
