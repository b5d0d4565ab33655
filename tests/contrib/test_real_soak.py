"""The soak test on a real API server runs from end to end, with stand-ins for the executables that it needs."""

import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from contrib.control_plane.servers import find_assets
from contrib.soak import real
from contrib.soak.real import Minute, Report, soak_real

STAND_INS = Path(__file__).parent / "stand_ins"


@pytest.fixture
def _assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        script = STAND_INS / f"{name.replace('-', '_')}.py"
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))


@pytest.mark.usefixtures("_assets")
def test_objects_come_and_go_while_memory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "MINUTE_SECONDS", 1.5)
    monkeypatch.setattr(real, "WAVE_SECONDS", 1)
    monkeypatch.setattr(real, "LIFE_SECONDS", 1.0)
    monkeypatch.setattr(real, "CLEARED_MINUTES", 1)
    shown: list[Minute] = []
    report = trio.run(partial(soak_real, find_assets(), 3, 20, 0, shown.append))
    assert [one.minute for one in shown] == [1, 2, 3]
    assert report.minutes == shown
    assert shown[-1].created in range(20, 81, 20)
    assert 8 <= shown[-1].bound < shown[-1].created
    assert 0 < shown[-1].alive < 200
    assert 20 < report.first_mib < shown[-1].memory_mib
    assert report.last_mib > 20


def report_of(*memory_mib: float) -> Report:
    return Report([Minute(number, mib, 0, 0, 0) for number, mib in enumerate(memory_mib)])


@pytest.mark.parametrize(
    ("memory_mib", "is_level"),
    [
        ([100, 150, *[160, 158, 163] * 10], True),
        ([60 + 10 * n for n in range(15)] + [200] * 45, True),
        ([60 + 10 * n for n in range(15)] + [200 + 0.5 * n for n in range(45)], False),
        ([100] * 50 + [200] * 10, False),
        ([100, 120], False),
    ],
    ids=["level", "after the settling", "grows slowly", "grows late", "short"],
)
def test_memory_is_level_or_grows(memory_mib: list[float], is_level: bool) -> None:
    assert report_of(*memory_mib).is_level == is_level
