"""The comparison with kube-scheduler runs from end to end, with stand-ins for the three executables that it needs.

The stand-in for kube-scheduler is trio-sched itself; how the two compare is for the real ones to show.
"""

import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from contrib.benchmarks import chart
from contrib.benchmarks.__main__ import main
from contrib.benchmarks.real import compare, measure
from contrib.benchmarks.real.compare import OURS, THEIRS, Comparison, Results
from contrib.benchmarks.real.measure import Measured
from contrib.benchmarks.real.prepare import prepare
from contrib.benchmarks.real.workloads import WORKLOADS, prepared_objects
from contrib.benchmarks.scheduler_process import TRIO_SCHED
from contrib.control_plane.servers import AssetsMissing, ServerFiles, find_assets

STAND_INS = Path(__file__).parent / "stand_ins"
EXECUTABLES = ("etcd", "kube-apiserver", "kube-scheduler")


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the stand-ins, which ``KUBEBUILDER_ASSETS`` names."""
    folder = tmp_path / "assets"
    folder.mkdir()
    for name in EXECUTABLES:
        script = STAND_INS / f"{name.replace('-', '_')}.py"
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    monkeypatch.setattr(measure, "SETTLED_SECONDS", 0.3)
    monkeypatch.setattr(measure, "TIMEOUT_SECONDS", 60.0)
    return folder


def small(name: str, *, nodes: int, pods: int) -> Comparison:
    (workload,) = [one for one in WORKLOADS if one.name == name]
    return Comparison(evolve(workload, nodes=nodes, pods=pods))


@pytest.mark.usefixtures("assets")
def test_both_schedulers_run_on_copies_of_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "results.json"

    monkeypatch.setattr(compare, "WORKLOADS", (small("unschedulable", nodes=5, pods=20).workload,))

    result = CliRunner().invoke(main, ["real", "--json", str(written)])

    assert result.exit_code == 0, result.output
    document = json.loads(written.read_text())
    (compared,) = document["real"]["comparisons"]
    assert set(compared["runs"]) == {OURS, THEIRS}
    for (run,) in compared["runs"].values():
        assert 0 < run["first_bind_seconds"] <= run["last_bind_seconds"]
        assert 0 < run["start_cpu_seconds"] <= run["cpu_seconds"]
        assert run["events"] == {"Scheduled": 18, "FailedScheduling": 2}
        assert run["peak_mib"] > 20
    assert {figure["name"] for figure in document["figures"]} == {
        "share of kube-scheduler's CPU per pod",
        "speed-up to the last bind",
    }
    assert document["real"]["kube_scheduler"].startswith("Kubernetes v1.36")
    assert "5 nodes, 20 pods" in result.output
    assert "ratio" in result.output


async def run_once(comparison: Comparison, folder: Path) -> Measured:
    found, files, prepared = find_assets(), ServerFiles.write(folder), folder / "prepared"
    prepared.mkdir()
    await prepare(found, files, comparison.workload, prepared)
    return await measure.measure(found, files, comparison.workload, prepared, TRIO_SCHED)


@pytest.mark.usefixtures("assets")
async def test_victims_make_room_for_preemptors(tmp_path: Path) -> None:
    run = await run_once(small("preemption", nodes=3, pods=3), tmp_path)

    assert run.events["Scheduled"] == 3
    assert run.events["Preempted"] == 9


@pytest.mark.usefixtures("assets")
async def test_at_a_low_rate_the_waits_are_measured(tmp_path: Path) -> None:
    comparison = small("low-rate", nodes=5, pods=30)
    run = await run_once(comparison, tmp_path)
    comparison.runs = {OURS: [run], THEIRS: [run]}

    assert run.events == {"Scheduled": 30}
    assert run.wait_p50_ms is not None
    assert run.wait_p99_ms is not None
    assert 0 < run.wait_p50_ms <= run.wait_p99_ms
    assert [(figure.name, figure.is_met) for figure in comparison.figures()] == [
        ("share of kube-scheduler's CPU per pod", False),
        ("creation to bind, p50", True),
        ("creation to bind, p99", True),
    ]


def test_without_a_folder_it_says_what_is_missing_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)

    result = CliRunner().invoke(main, ["real"])

    assert result.exit_code == 0
    assert result.output.splitlines()[1:] == [
        "real: left out, KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler"
    ]


@pytest.mark.parametrize("missing", EXECUTABLES)
def test_the_executable_that_is_missing_is_named(assets: Path, missing: str) -> None:
    (assets / missing).unlink()

    with pytest.raises(AssetsMissing, match=rf"has no {missing}$"):
        find_assets()


def test_a_server_that_does_not_start_is_shown_with_its_log(assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (assets / "etcd").write_text("#!/bin/sh\necho no disk left\nexit 1\n")

    monkeypatch.setattr(compare, "WORKLOADS", WORKLOADS[:1])
    result = CliRunner().invoke(main, ["real"])

    assert result.exit_code == 1
    assert result.output.endswith("etcd did not become ready:\nno disk left\n")


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_the_names_of_the_pods_to_schedule_are_those_that_are_created(workload: compare.Workload) -> None:
    tiny = evolve(workload, nodes=4, pods=40 if workload.pod_type != "daemon" else 4, pods_per_second=0.0)
    pods = [one for path, one in prepared_objects(tiny) if path.endswith("/pods") and "nodeName" not in one["spec"]]

    assert {pod["metadata"]["name"] for pod in pods} == tiny.schedulable | tiny.unschedulable
    too_large = {
        one["metadata"]["name"]
        for one in pods
        if one["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1000"
    }
    assert too_large == tiny.unschedulable


def run_of(seconds: float, cpu: float) -> Measured:
    return Measured(
        first_bind_seconds=1.0,
        last_bind_seconds=seconds,
        start_cpu_seconds=0.5,
        cpu_seconds=cpu,
        peak_mib=100.0,
        events={"Scheduled": 100},
    )


def test_ratios_are_those_of_medians() -> None:
    one = small("basic-1000", nodes=10, pods=100)
    one.runs = {
        OURS: [run_of(9.0, 3.0), run_of(4.0, 1.0), run_of(5.0, 2.0)],
        THEIRS: [run_of(20.0, 8.0), run_of(10.0, 8.0), run_of(99.0, 80.0)],
    }

    assert math.isclose(one.cpu_share, 0.25)
    assert math.isclose(one.speed_up, 4.0)
    assert math.isclose(one.cpu_per_pod_after_start_us(OURS), 15_000)
    assert [figure.is_met for figure in one.figures()] == [True, True]


def test_the_chart_shows_every_workload_to_scale(tmp_path: Path) -> None:
    first, second = small("basic-1000", nodes=10, pods=100), small("zone-spread", nodes=20, pods=50)
    first.runs = {OURS: [run_of(5.0, 2.0)], THEIRS: [run_of(20.0, 8.0)]}
    second.runs = {OURS: [run_of(3.0, 2.0)], THEIRS: [run_of(6.0, 4.0)]}
    results = Results("Kubernetes <v1.36.2>", [first, second])
    machine = {"cores": 2, "processor": "Invented", "python": "3.11.7"}
    document = {"version": "0", "date": "2000-01-01T00:00:00", "machine": machine, "real": results.as_json()}
    written, drawn = tmp_path / "results.json", tmp_path / "chart.svg"
    written.write_text(json.dumps(document))

    result = CliRunner().invoke(chart.main, [str(written), str(drawn)])

    assert result.exit_code == 0, result.output
    svg = ElementTree.parse(drawn).getroot()
    texts = ["".join(one.itertext()) for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"basic-1000", "zone-spread", "10 nodes, 100 pods", "20,000 µs", "80,000 µs", "5.0 s"} <= set(texts)
    assert any("Kubernetes <v1.36.2>" in text and "2000-01-01" in text and "Invented" in text for text in texts)
    bars = [float(one.attrib["width"]) for one in svg.iter("{http://www.w3.org/2000/svg}rect")][2:]
    assert [round(ours / theirs, 2) for ours, theirs in zip(bars[::2], bars[1::2], strict=True)] == [
        0.25,
        0.25,
        0.5,
        0.5,
    ]


def test_a_chart_is_not_drawn_from_other_benches(tmp_path: Path) -> None:
    written = tmp_path / "results.json"
    written.write_text(json.dumps({"figures": []}))

    result = CliRunner().invoke(chart.main, [str(written), str(tmp_path / "chart.svg")])

    assert result.exit_code == 1
    assert "there are no results of the bench `real` in this file" in result.output
    assert not (tmp_path / "chart.svg").exists()
