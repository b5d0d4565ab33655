"""Writes docs/reference/exit_codes.md from the exit codes: ``python -m contrib.docs.make_exit_codes``."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Final

from contrib.docs.pages import Page, table
from trio_sched.cli.process import exit_code
from trio_sched.cli.process.exit_code import ExitCode

HEADER: Final = """\
# Exit codes

Scripts and service managers can rely on these numbers. Those of the daemon are kube-scheduler's.

This page is made from `trio_sched/cli/process/exit_code.py` by `make docs`.
"""
DAEMON: Final = """\

| the daemon ends because of | code |
| --- | --- |
| `--help`, `--version`, `--write-config-to` | 0 |
| anything that keeps it from starting | 1 |
| SIGTERM or SIGINT, with an election | 0 |
| SIGTERM or SIGINT, without an election (`finished without leader elect`) | 1 |
| a second SIGTERM or SIGINT | 1 |
| SIGQUIT, which has the stacks of all threads and tasks written to standard error before | 2 |
| a lost lease | 1 |

| `trio-sched check-config` | code |
| --- | --- |
| nothing is wrong; there may be warnings | 0 |
| something is wrong in at least one file | 1 |
| the command line is wrong; nothing was checked | 2 |

| `trio-sched plugins` | code |
| --- | --- |
| all plugins can be used | 0 |
| at least one cannot: it is listed with its error | 1 |

| `trio-sched replay` | code |
| --- | --- |
| every decision is the same, or chance alone makes it another one with another configuration | 0 |
| some decisions are others | 1 |
| something is wrong with the recording or the command line; with `--verify`: not everything was compared | 3 |

| `trio-sched compare` | code |
| --- | --- |
| every pod is on the same node | 0 |
| pods are on other nodes, or others exist; no fewer are placed | 1 |
| fewer pods are placed with the second | 2 |
| something is wrong with the files or the command line | 3 |

| `trio-sched what-if` | code |
| --- | --- |
| it works, and no pod loses its place | 0 |
| pods lose their place, cannot be evicted, or do not fit | 1 |
| the cluster, the files or the command line are wrong | 3 |
| the cluster is not as it was for the answer of `--if-unchanged` | 4 |
| `what-if config` | those of `compare`, and 4 |

| `trio-sched explain`, `kubectl why` | code |
| --- | --- |
| every pod has a node, or one that it fits now | 0 |
| at least one is pending for a cause | 1 |
| there is no such pod, or the workload has none | 2 |
| the cluster, the files or the command line are wrong, or pods and nodes may not be listed; nothing is explained | 3 |
"""


def text() -> str:
    """The whole page."""
    described = _docstrings()
    rows = ((str(code.value), f"`{code.name}`", described[code.name]) for code in ExitCode)
    return f"{HEADER}\n{table(('code', 'name', 'meaning'), rows)}{DAEMON}"


def _docstrings() -> dict[str, str]:
    """The text below each member, which Python itself does not keep."""
    (members,) = (node.body for node in ast.parse(inspect.getsource(exit_code)).body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for member, below in pairwise(members):
        if isinstance(member, ast.Assign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            assert isinstance(member.targets[0], ast.Name)
            found[member.targets[0].id] = str(below.value.value)
    return found


PAGE: Final = Page("exit_codes.md", text)

if __name__ == "__main__":
    PAGE.write()
