"""Counts how recordings of kube-scheduler agree with what we do, per area and row.

How to use it in a replay (``test_<area>.py`` in this folder):

    @pytest.mark.parametrize("chunk", range(CHUNKS))
    def test_area_agrees_with_its_recordings(golden: GoldenRun, chunk: int) -> None:
        for case in golden.cases("area", chunk=chunk, chunks=CHUNKS, sample=40):
            golden.record("area", "RowName", agreed, f"{case['name']} node n1: expected …, got …")
        golden.check()

*cases* gives every case of the chunk when the tests run with ``--golden-dir``, and about *sample* cases in all, spread
over the file, when they don't. *record* counts one comparison; its detail names the case and the plugin, node or step,
and says what was expected and what came; it is only kept if they disagree. *verify* fails the test if a row disagreed.
*record_on_purpose* is for a recording that we mean to disagree with: it has a row of its own, and is listed. A line
``golden AREA ROW AGREED/TOTAL`` per row ends the session, over all xdist workers.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

Case = Mapping[str, Any]
Row = tuple[str, str]

_MAX_DETAILS: Final = 40


@define(eq=False)
class Scoreboard:
    """The counts of one session (or of one xdist worker of it)."""

    agreed: dict[Row, int] = field(factory=lambda: defaultdict(int))
    total: dict[Row, int] = field(factory=lambda: defaultdict(int))
    details: dict[Row, list[str]] = field(factory=lambda: defaultdict(list))
    on_purpose: dict[Row, list[str]] = field(factory=lambda: defaultdict(list))
    """Where we mean to do otherwise than the recording."""

    def record(self, area: str, row: str, agreed: bool, detail: str) -> None:
        """Count one comparison."""
        self.total[area, row] += 1
        self.agreed[area, row] += agreed
        if not agreed:
            self.details[area, row].append(detail)

    def to_wire(self) -> list[Any]:
        """The counts as what xdist can carry from a worker to the controller."""
        return [
            [
                *row,
                *(counts.get(row, 0) for counts in (self.agreed, self.total)),
                *(kept.get(row, []) for kept in (self.details, self.on_purpose)),
            ]
            for row in self.total
        ]

    def merge(self, wire: Sequence[Any]) -> None:
        """Add the counts of a worker."""
        for area, row, agreed, total, details, on_purpose in wire:
            if total:
                self.agreed[area, row] += agreed
                self.total[area, row] += total
            if details:
                self.details[area, row] += details
            if on_purpose:
                self.on_purpose[area, row] += on_purpose

    def lines(self) -> Iterator[str]:
        """The report: details of what disagreed, then a line per row."""
        for kind, found in (("on purpose", self.on_purpose), ("disagreement", self.details)):
            for (area, row), details in sorted(found.items()):
                for detail in details[:_MAX_DETAILS]:
                    yield f"{kind} {area} {row}: {detail}"
                if len(details) > _MAX_DETAILS:
                    yield f"{kind} {area} {row}: and {len(details) - _MAX_DETAILS} more"
        for (area, row), total in sorted(self.total.items()):
            yield f"golden {area} {row} {self.agreed[area, row]}/{total}"


@define(eq=False)
class GoldenRun:
    """What one replaying test works with: the recordings, and where to count."""

    directory: Path
    everything: bool
    scoreboard: Scoreboard
    _failures: list[str] = field(factory=list)

    def has(self, area: str) -> bool:
        """Whether there are recordings of *area*."""
        return self._file(area) is not None

    def _file(self, area: str) -> Path | None:
        candidates = (self.directory / f"{area}.jsonl.gz", self.directory / f"{area}.jsonl")
        return next((path for path in candidates if path.exists()), None)

    def cases(self, area: str, *, chunk: int = 0, chunks: int = 1, sample: int = 100) -> Iterator[Case]:
        """The cases of *area* that belong to *chunk*; only a sample of them unless everything is asked for.

        An area without recordings in the directory has no cases.
        """
        path = self._file(area)
        if path is None:
            return
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = content.splitlines()
        if not self.everything:
            lines = lines[:: max(1, len(lines) // sample)]
        for line in lines[chunk::chunks]:
            yield json.loads(line)

    def record(self, area: str, row: str, agreed: bool, detail: str) -> None:
        """Count one comparison; *detail* matters only if it disagreed."""
        self.scoreboard.record(area, row, agreed, detail)
        if not agreed:
            self._failures.append(f"{area} {row}: {detail}")

    def record_on_purpose(self, area: str, row: str, as_meant: bool, detail: str) -> None:
        """Count a recording that we mean to disagree with, and list it; it fails if we do not do what we mean to."""
        if as_meant:
            self.scoreboard.on_purpose[area, row].append(detail)
        self.record(area, row, as_meant, detail)

    def check(self) -> None:
        """Fail if anything disagreed that should not."""
        shown = "\n".join(self._failures[:_MAX_DETAILS])
        assert not self._failures, f"{len(self._failures)} disagreements:\n{shown}"
