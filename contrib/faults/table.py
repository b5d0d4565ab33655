"""The table of faults: recovery of both schedulers, and what did not hold."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field

from contrib.control_plane.servers import Assets

if TYPE_CHECKING:
    from contrib.faults.faults import Fault

OURS: Final = "trio-sched"
THEIRS: Final = "kube-scheduler"
BEHIND_SECONDS: Final = 1.0
"""So much slower than kube-scheduler is too slow."""
_BEGIN, _END = "<!-- faults -->", "<!-- end of faults -->"


@define
class Outcome:
    """One fault in front of one scheduler.

    Attributes:
        seconds: from the end of the fault to the bind of a new pod, each time.
        problems: what did not hold afterwards.
        answers: what both schedulers must have done alike.
    """

    seconds: list[float] = field(factory=list)
    problems: list[str] = field(factory=list)
    answers: list[str] = field(factory=list)

    @property
    def slowest(self) -> float:
        """The longest recovery."""
        return max(self.seconds, default=math.nan)

    def __str__(self) -> str:
        times = ", ".join(f"{seconds:.2f}" for seconds in self.seconds)
        return "  ".join([times, *self.problems])


@define
class Table:
    """All outcomes."""

    assets: Assets
    seed: int
    outcomes: dict[str, dict[str, Outcome]] = field(factory=dict)
    """By fault and scheduler."""
    _faults: dict[str, Fault] = field(factory=dict)

    def add(self, scheduler: str, fault: Fault, outcome: Outcome) -> None:
        """Add a cell."""
        self._faults[fault.name] = fault
        self.outcomes.setdefault(fault.name, {})[scheduler] = outcome

    @property
    def failures(self) -> list[str]:
        """The faults after which trio-sched was too slow, or something did not hold."""
        return [name for name in self.outcomes if self._verdict(name) not in ("ok", "left out")]

    def _verdict(self, name: str) -> str:
        ours = self.outcomes[name].get(OURS)
        theirs = self.outcomes[name].get(THEIRS)
        if ours is None:
            return ""
        if any(problem.startswith("left out") for problem in ours.problems):
            return "left out"
        if ours.problems:
            return "; ".join(ours.problems)
        if theirs is not None and theirs.answers != ours.answers:
            pairs = zip(theirs.answers, ours.answers, strict=True)
            return "kube-scheduler: " + next(f"{one}; here: {other}" for one, other in pairs if one != other)
        if ours.slowest > self._faults[name].limit_seconds:
            return f"slower than {self._faults[name].limit_seconds:g} s"
        if theirs is not None and theirs.slowest < ours.slowest - BEHIND_SECONDS:
            return f"slower than kube-scheduler by {ours.slowest - theirs.slowest:.1f} s"
        return "ok"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Fault, both recoveries, and the verdict."""
        return [
            (name, self._shown(name, THEIRS), self._shown(name, OURS), self._verdict(name)) for name in self.outcomes
        ]

    def _shown(self, name: str, scheduler: str) -> str:
        outcome = self.outcomes[name].get(scheduler)
        if outcome is None or not outcome.seconds:
            return "–"
        times = ", ".join(f"{seconds:.2f}" if math.isfinite(seconds) else "never" for seconds in outcome.seconds)
        return times + (" (!)" if scheduler == THEIRS and outcome.problems else "")

    def text(self) -> str:
        """The table as Markdown."""
        lines = ["| fault | kube-scheduler, s | trio-sched, s | afterwards |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows()]
        return "\n".join(lines)

    def write(self, page: Path) -> None:
        """Replace the table in *page*, with machine and date."""
        versions = subprocess.run(
            [str(self.assets.kube_scheduler), "--version"], check=True, capture_output=True, text=True
        ).stdout.strip()
        about = (
            f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores ({platform.machine()}), Python "
            f"{platform.python_version()}, {versions}, seed {self.seed}:"
        )
        before, _, rest = page.read_text().partition(_BEGIN)
        _, _, after = rest.partition(_END)
        page.write_text(f"{before}{_BEGIN}\n{about}\n\n{self.text()}\n{_END}{after}")
