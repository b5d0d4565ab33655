"""Both schedulers on every workload, in turn, and the ratios between them."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import trio
from attrs import asdict, define, field

from contrib.benchmarks.real.measure import Measured, measure
from contrib.benchmarks.real.prepare import prepare
from contrib.benchmarks.real.workloads import WORKLOADS, Workload
from contrib.benchmarks.report import Figure
from contrib.benchmarks.scheduler_process import TRIO_SCHED
from contrib.control_plane.server_process import ServerDied
from contrib.control_plane.servers import Assets, AssetsMissing, ServerFiles, find_assets
from trio_sched.documents.json_values import Json
from trio_sched.errors import first_leaf

T = TypeVar("T")
OURS, THEIRS = "trio-sched", "kube-scheduler"


@define
class Comparison:
    """One workload: the runs of both schedulers, the medians of these, and the ratios of the medians."""

    workload: Workload
    runs: dict[str, list[Measured]] = field(factory=lambda: {OURS: [], THEIRS: []})

    def median(self, scheduler: str, of: Callable[[Measured], float]) -> float:
        """The median over the runs of *scheduler*."""
        return statistics.median(of(run) for run in self.runs[scheduler])

    def cpu_per_pod_us(self, scheduler: str) -> float:
        """From the start of the process to the last event, so that start-up is included."""
        return self.median(scheduler, lambda run: run.cpu_seconds) / self.workload.measured_pods * 1e6

    def cpu_per_pod_after_start_us(self, scheduler: str) -> float:
        """The same from the first bind or event on."""
        if self.workload.pods_per_second:
            return self.cpu_per_pod_us(scheduler)
        used = self.median(scheduler, lambda run: run.cpu_seconds - run.start_cpu_seconds)
        return used / self.workload.measured_pods * 1e6

    @property
    def cpu_share(self) -> float:
        """Our CPU per pod as a share of kube-scheduler's."""
        return self.cpu_per_pod_us(OURS) / self.cpu_per_pod_us(THEIRS)

    @property
    def speed_up(self) -> float:
        """How many times sooner our last pod is bound, from the start of the process."""
        ours, theirs = (self.median(one, lambda run: run.last_bind_seconds) for one in (OURS, THEIRS))
        return theirs / ours

    def figures(self) -> Iterator[Figure]:
        """The ratios with their goals."""
        workload, case = self.workload, self.workload.title
        yield Figure("real", case, "share of kube-scheduler's CPU per pod", self.cpu_share, "", workload.cpu_goal)
        if workload.pods_per_second:
            yield from self._waits("creation to bind, p50", lambda run: run.wait_p50_ms or 0.0)
            yield from self._waits("creation to bind, p99", lambda run: run.wait_p99_ms or 0.0)
        else:
            goal = workload.speed_goal or None
            yield Figure("real", case, "speed-up to the last bind", self.speed_up, "times", goal, more_is_better=True)

    def _waits(self, name: str, of: Callable[[Measured], float]) -> Iterator[Figure]:
        yield Figure("real", self.workload.title, name, self.median(OURS, of), "ms", self.median(THEIRS, of))

    def as_json(self) -> Json:
        """For the file with the results."""
        runs = {scheduler: [asdict(run) for run in runs] for scheduler, runs in self.runs.items()}
        return {"workload": asdict(self.workload), "runs": runs}

    @classmethod
    def from_json(cls, document: Json) -> Comparison:
        """The reverse of `as_json`."""
        runs = {scheduler: [Measured(**run) for run in runs] for scheduler, runs in document["runs"].items()}
        return cls(Workload(**document["workload"]), runs)


@define
class Results:
    """What was compared, and with which kube-scheduler."""

    kube_scheduler: str
    comparisons: list[Comparison]

    def figures(self) -> list[Figure]:
        """The ratios with their goals."""
        return [figure for comparison in self.comparisons for figure in comparison.figures()]

    def as_json(self) -> Json:
        """For the file with the results."""
        comparisons = [comparison.as_json() for comparison in self.comparisons]
        return {"kube_scheduler": self.kube_scheduler, "comparisons": comparisons}

    @classmethod
    def from_json(cls, document: Json) -> Results:
        """The reverse of `as_json`."""
        return cls(document["kube_scheduler"], [Comparison.from_json(one) for one in document["comparisons"]])


def compare(names: Sequence[str] = (), *, runs: int = 1) -> Results | None:
    """Run both schedulers on the workloads with these names, or on all of them.

    Without the executables it says what is missing and returns nothing.
    """
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        click.echo(f"real: left out, {missing}", err=True)
        return None
    commands = {OURS: TRIO_SCHED, THEIRS: (str(assets.kube_scheduler),)}
    results = Results(_version(assets), [])
    for number, workload in enumerate(one for one in WORKLOADS if not names or one.name in names):
        comparison = Comparison(workload)
        results.comparisons.append(comparison)
        with tempfile.TemporaryDirectory(prefix="trio-sched-bench-") as name:
            folder = Path(name)
            (folder / "prepared").mkdir()
            files = ServerFiles.write(folder)
            click.echo(f"  {workload.title}: preparing …", err=True)
            _run(partial(prepare, assets, files, workload, folder / "prepared"))
            for turn in range(runs):
                # Each is first as often as the other: a machine gets warm, and its neighbours come and go.
                order = (OURS, THEIRS) if (number + turn) % 2 == 0 else (THEIRS, OURS)
                for scheduler in order:
                    click.echo(f"  {workload.title}: {scheduler} …", err=True)
                    run = partial(measure, assets, files, workload, folder / "prepared", commands[scheduler])
                    comparison.runs[scheduler].append(_run(run))
    return results


def _version(assets: Assets) -> str:
    asked = [str(assets.kube_scheduler), "--version"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _run(function: Callable[[], Awaitable[T]]) -> T:
    """Run an asynchronous function; a failure that a person can read is not wrapped in a group."""
    try:
        return trio.run(function)
    except ServerDied as died:
        raise SystemExit(str(died)) from None
    except BaseExceptionGroup as group:
        exits = group.subgroup((SystemExit, ServerDied))
        if exits is None:
            raise
        leaf = first_leaf(exits)
        raise SystemExit(str(leaf)) if isinstance(leaf, ServerDied) else leaf from None
