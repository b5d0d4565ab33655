"""The comparison as a table for people: a row per scheduler, and one with the ratios and their goals."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from contrib.benchmarks.real.compare import OURS, THEIRS, Comparison, Results
from contrib.benchmarks.real.measure import Measured

_COLUMNS: dict[str, Callable[[Measured], float | None]] = {
    "first bind\ns": lambda run: run.first_bind_seconds,
    "last bind\ns": lambda run: run.last_bind_seconds,
    "start-up\nCPU s": lambda run: run.start_cpu_seconds,
    "peak\nMiB": lambda run: run.peak_mib,
    "wait p50\nms": lambda run: run.wait_p50_ms,
    "wait p99\nms": lambda run: run.wait_p99_ms,
}


def show_results(results: Results) -> None:
    """Print all comparisons."""
    table = Table(title=f"trio-sched beside {results.kube_scheduler}")
    for name in ("workload", "scheduler", "CPU\nµs/pod", "after\nstart", *_COLUMNS):
        table.add_column(name, no_wrap=True)
    for comparison in results.comparisons:
        _add(table, comparison)
    Console(width=150 if not sys.stdout.isatty() else None).print(table)


def _add(table: Table, comparison: Comparison) -> None:
    workload = comparison.workload
    for scheduler, first in ((OURS, workload.name), (THEIRS, f"{workload.nodes:,} nodes, {workload.pods:,} pods")):
        table.add_row(
            first,
            scheduler,
            f"{comparison.cpu_per_pod_us(scheduler):,.0f}",
            f"{comparison.cpu_per_pod_after_start_us(scheduler):,.0f}",
            *(_median(comparison, scheduler, of) for of in _COLUMNS.values()),
        )
    share = _coloured(
        f"{comparison.cpu_share:.2f} (≤ {workload.cpu_goal:.2f})", is_met=comparison.cpu_share <= workload.cpu_goal
    )
    speed_up = f"{comparison.speed_up:.1f}x"
    if workload.speed_goal:
        is_met = comparison.speed_up >= workload.speed_goal
        speed_up = _coloured(f"{speed_up} (≥ {workload.speed_goal:g})", is_met=is_met)
    elif workload.pods_per_second:
        speed_up = ""  # the pods decide how long it takes
    after_start = [comparison.cpu_per_pod_after_start_us(one) for one in (OURS, THEIRS)]
    table.add_row("", "ratio", share, f"{after_start[0] / after_start[1]:.2f}", "", speed_up, end_section=True)


def _median(comparison: Comparison, scheduler: str, of: Callable[[Measured], float | None]) -> str:
    if of(comparison.runs[scheduler][0]) is None:
        return ""
    return f"{comparison.median(scheduler, lambda run: of(run) or 0.0):,.1f}"


def _coloured(text: str, *, is_met: bool) -> str:
    return f"[{'green' if is_met else 'red'}]{text}[/]"
