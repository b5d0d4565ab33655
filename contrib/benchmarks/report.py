"""Results as a table for people and as JSON for later."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, frozen
from rich.console import Console
from rich.table import Table

import trio_sched
from trio_sched.documents.json_values import Json


@frozen
class Figure:
    """One measured number; *goal* is where it should arrive, in the same unit, if there is one."""

    bench: str
    case: str
    name: str
    value: float
    unit: str
    goal: float | None = None
    more_is_better: bool = False

    @property
    def is_met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal


def show(figures: Sequence[Figure]) -> None:
    """Print *figures* as a table."""
    table = Table("bench", "case", "what", "measured", "goal", title="trio-sched benchmarks")
    for figure in figures:
        goal = "" if figure.goal is None else f"{'≥' if figure.more_is_better else '≤'} {figure.goal:g}"
        colour = {None: "", True: "[green]", False: "[red]"}[figure.is_met]
        value = f"{figure.value:,.1f}" if figure.value >= 10 else f"{figure.value:,.2f}"
        table.add_row(figure.bench, figure.case, figure.name, f"{colour}{value} {figure.unit}", goal)
    Console(width=120 if not sys.stdout.isatty() else None).print(table)


def write_json(figures: Sequence[Figure], path: Path, **more: Json) -> None:
    """Write *figures*, with the date and the machine, and whatever else belongs to them."""
    document: Json = {
        "version": trio_sched.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "figures": [asdict(figure) for figure in figures],
        **more,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _machine() -> Json:
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {
        "cores": os.cpu_count(),
        "processor": model.partition(":")[2].strip() or platform.machine(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }
