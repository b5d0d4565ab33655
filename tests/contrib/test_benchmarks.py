"""The benchmarks run and measure something; how much is for people to judge, not for a test."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from contrib.benchmarks import (
    churn,
    engine,
    explanations,
    live_page,
    path,
    plugin_costs,
    preemption,
    recording,
    scheduler_process,
    shards,
    start,
    transport,
    watch,
)
from contrib.benchmarks.__main__ import main


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "NODES", (30,))
    monkeypatch.setattr(engine, "PODS", 120)
    monkeypatch.setattr(engine, "WARM_UP", 20)
    monkeypatch.setattr(watch, "EVENTS", 200)
    monkeypatch.setattr(transport, "REQUESTS", 160)
    monkeypatch.setattr(scheduler_process, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(scheduler_process, "RETRY_PERIOD", "100ms")
    monkeypatch.setattr(start, "RUNS", 1)
    monkeypatch.setattr(preemption, "DRY_RUN_NODES", 20)
    monkeypatch.setattr(churn, "SECONDS", 0.2)
    monkeypatch.setattr(live_page, "SECONDS", 0.3)
    monkeypatch.setattr(live_page, "ROUNDS", 1)
    monkeypatch.setattr(explanations, "ROUNDS", 1)
    monkeypatch.setattr(explanations, "SECONDS", 0.3)
    monkeypatch.setattr(explanations, "SETTLING_SECONDS", 0.2)
    monkeypatch.setattr(explanations, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(live_page, "SETTLING_SECONDS", 0.5)


def test_engine_transport_and_watch_write_their_figures(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"

    result = CliRunner().invoke(main, ["engine", "transport", "watch", "--json", str(written)])

    assert result.exit_code == 0, result.output
    assert "trio-sched benchmarks" in result.output
    document = json.loads(written.read_text())
    assert {figure["bench"] for figure in document["figures"]} == {"engine", "transport", "watch"}
    assert all(figure["value"] > 0 for figure in document["figures"])
    assert set(document["machine"]) == {"cores", "processor", "memory_gib", "architecture", "python"}


def test_the_whole_path_binds_every_pod() -> None:
    figures = {figure.name: figure for figure in path.run(nodes=(20,), pods=60, constraint="mixed")}

    assert set(figures) == {"scheduler CPU", "throughput", "peak memory"}
    assert figures["throughput"].value > 0
    assert figures["peak memory"].value > 20


def test_one_of_two_replicas_and_both_bind_every_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PAUSE_SECONDS": 0.1, "SECONDS": 0.4}.items():
        monkeypatch.setattr(shards, name, value)
    one = shards.one_of(2, 20, 50)
    assert one.pods == 100
    assert 0 < one.cpu_seconds[0] < one.seconds + 1
    both = {figure.name: figure.value for figure in shards.all_of(2, 20, 50, "both")}
    assert both["throughput"] > 0
    assert 0 < both["creation to bind, own node, p50"] < 10_000
    assert 0 < both["creation to bind, nominated, p50"] < 10_000


def test_timing_and_tracing_of_a_plugin_are_measured_against_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NODES": 20, "PODS": 40, "ROUNDS": 1, "PAUSE_SECONDS": 0.0}.items():
        monkeypatch.setattr(plugin_costs, name, value)
    figures = {figure.name: figure for figure in plugin_costs.run()}
    assert set(figures) == {
        "scheduler CPU, with a plugin",
        "all hooks timed, against neither",
        "a trace for other pods, against neither",
    }
    assert all(figure.value > 0 for figure in figures.values())


def test_what_a_recording_costs_is_measured_beside_a_scheduler_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NODES": 10, "RUNNING_PODS": 20, "PAIRS": 1, "SECONDS": 0.2}.items():
        monkeypatch.setattr(recording, name, value)
    figures = {(figure.case.split()[-1], figure.name): figure.value for figure in recording.run(pods=30)}
    assert set(figures) == {
        (case, name) for case in ("pods", "updates/s") for name in ("without", "with", "cost", "size")
    }
    assert all(value > 0 for (_case, name), value in figures.items() if name in ("without", "with"))
    assert figures["pods", "size"] > figures["updates/s", "size"] == 0


def test_the_start_is_measured_from_the_process_to_the_first_bind() -> None:
    figures = {(figure.case, figure.name): figure.value for figure in start.run((20,))}

    assert figures["--version", "CPU"] > 0
    case = "20 nodes, 200 running pods"
    assert figures[case, "until synced"] > 0
    assert figures[case, "until the first bind"] > 0
    assert figures[case, "CPU"] > 0
    assert 20 < figures[case, "memory when idle"] <= figures[case, "peak memory"]


def test_every_preemptor_gets_its_node() -> None:
    figures = {(figure.case, figure.name): figure.value for figure in preemption.run((6,))}

    assert figures["6 full nodes, 6 preemptors", "scheduler CPU"] > 0
    assert figures["6 full nodes, 6 preemptors", "throughput"] > 0


def test_churn_costs_something_per_update() -> None:
    figures = {figure.name: figure.value for figure in churn.run((20,))}

    assert figures["200 pod updates/s"] > 0
    assert figures["20 heartbeats of nodes/s"] > 0
    assert 0 < figures["creation to bind, p50"] <= figures["creation to bind, p99"]


def test_a_running_scheduler_explains_a_pod_while_others_are_bound() -> None:
    figures = {figure.name: figure.value for figure in explanations.run((20,))}
    assert figures["answers"] >= 1
    assert 0 < figures["median time of an answer"] < 60
    assert figures["p99 of time to bind, somebody asks"] > 0


def test_readers_of_the_live_page_get_a_snapshot_and_what_follows() -> None:
    figures = {figure.name: figure.value for figure in live_page.run((20,))}

    assert 0 < figures["snapshot received"] < 10_000
    assert figures["snapshot, compressed"] > 0.5
    assert figures["sent to each"] > 0


def test_a_bench_that_does_not_exist_is_refused_with_those_that_do() -> None:
    result = CliRunner().invoke(main, ["engin"])

    assert result.exit_code == 2
    assert "'engine'" in result.output
