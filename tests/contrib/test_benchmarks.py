"""The benchmarks run and measure something; how much is for people to judge, not for a test."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from contrib.benchmarks import engine, path, transport, watch
from contrib.benchmarks.__main__ import main


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "NODES", (30,))
    monkeypatch.setattr(engine, "PODS", 120)
    monkeypatch.setattr(engine, "WARM_UP", 20)
    monkeypatch.setattr(watch, "EVENTS", 200)
    monkeypatch.setattr(transport, "REQUESTS", 160)


def test_engine_transport_and_watch_write_their_figures(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"

    result = CliRunner().invoke(main, ["engine", "transport", "watch", "--json", str(written)])

    assert result.exit_code == 0, result.output
    assert "trio-sched benchmarks" in result.output
    document = json.loads(written.read_text())
    assert {figure["bench"] for figure in document["figures"]} == {"engine", "transport", "watch"}
    assert all(figure["value"] > 0 for figure in document["figures"])
    assert set(document["machine"]) == {"cores", "architecture", "python"}


def test_the_whole_path_binds_every_pod() -> None:
    figures = {figure.name: figure for figure in path.run(nodes=(20,), pods=60)}

    assert set(figures) == {"scheduler CPU", "throughput", "peak memory"}
    assert figures["throughput"].value > 0
    assert figures["peak memory"].value > 20


def test_a_bench_that_does_not_exist_is_refused_with_those_that_do() -> None:
    result = CliRunner().invoke(main, ["engin"])

    assert result.exit_code == 2
    assert "'engine'" in result.output
