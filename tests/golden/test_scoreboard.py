import gzip
from pathlib import Path

import pytest
from comparison import refuses_former_version
from scoreboard import GoldenRun, Scoreboard


def run_in(directory: Path, *, everything: bool = True) -> GoldenRun:
    lines = "".join(f'{{"name": "case/{number}"}}\n' for number in range(10))
    (directory / "area.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return GoldenRun(directory=directory, everything=everything, scoreboard=Scoreboard())


def test_chunks_together_hold_every_case_once(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    names = [case["name"] for chunk in range(3) for case in run.cases("area", chunk=chunk, chunks=3, sample=2)]
    assert sorted(names) == [f"case/{number}" for number in range(10)]


def test_a_sample_is_spread_over_the_file(tmp_path: Path) -> None:
    run = run_in(tmp_path, everything=False)
    assert [case["name"] for case in run.cases("area", sample=2)] == ["case/0", "case/5"]


def test_an_area_without_recordings_has_no_cases(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    assert not run.has("other")
    assert list(run.cases("other")) == []


def test_workers_add_up_to_one_report() -> None:
    total, worker = Scoreboard(), Scoreboard()
    total.record("a", "row", True, "")
    worker.record("a", "row", False, "case/1: expected x, got y")
    total.merge(worker.to_wire())
    assert list(total.lines()) == ["disagreement a row: case/1: expected x, got y", "golden a row 1/2"]


def test_what_is_otherwise_on_purpose_is_listed_and_fails_only_if_it_is_not_as_meant(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.record_on_purpose("a", "accepted", True, "case/1: accepted, recorded as refused")
    run.check()
    total = Scoreboard()
    total.merge(run.scoreboard.to_wire())
    assert list(total.lines()) == [
        "on purpose a accepted: case/1: accepted, recorded as refused",
        "golden a accepted 1/1",
    ]
    run.record_on_purpose("a", "accepted", False, "case/2: still refused")
    with pytest.raises(AssertionError, match="case/2: still refused"):
        run.check()


def not_registered(kind: str, version: str) -> str:
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/scheduler/scheme.go:29"'


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (not_registered("KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta3"), True),
        (not_registered("KubeSchedulerConfiguration", "componentconfig/v1alpha1"), True),
        (not_registered("KubeSchedulerConfiguration", "foo.k8s.io/v1beta3"), False),
        (not_registered("Policy", "v1"), False),
        (f"decoding args: {not_registered('KubeSchedulerConfiguration', 'componentconfig/v1alpha1')}", False),
        ("unknown flag: --policy_config_file", True),
        ("unknown flag: --nosuchflag", False),
    ],
)
def test_only_the_refusal_of_a_former_version_is_otherwise_on_purpose(error: str, is_one: bool) -> None:
    assert refuses_former_version(error) is is_one


def test_the_counts_of_all_workers_are_added(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.record("a", "row", True, "")
    run.check()
    total = Scoreboard()
    for _worker in range(2):
        total.merge(run.scoreboard.to_wire())
    assert list(total.lines()) == ["golden a row 2/2"]


def test_a_disagreement_fails(tmp_path: Path) -> None:
    run = run_in(tmp_path)
    run.record("a", "row", True, "case/1: expected x, got x")
    run.check()
    run.record("a", "row", False, "case/2: expected x, got y")
    with pytest.raises(AssertionError, match="case/2: expected x, got y"):
        run.check()
    assert list(run.scoreboard.lines())[-1] == "golden a row 1/2"
