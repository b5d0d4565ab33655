from pathlib import Path

import pytest

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.flags.metrics_options import metrics_options
from trio_sched.daemon.metrics.options import MetricsOptions

ATTEMPTS = "scheduler_schedule_attempts_total"


def options(*argv: str) -> MetricsOptions:
    return metrics_options(parse_flags(argv), watch_event_loop=False)


def test_without_flags_everything_is_shown_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert options() == MetricsOptions()
    assert not caplog.records


def test_disabled_families_are_named_in_full(caplog: pytest.LogCaptureFixture) -> None:
    assert options("--disabled-metrics=a,b", "--disabled-metrics=c").disabled == {"a", "b", "c"}
    assert not caplog.records


def test_an_empty_name_cannot_be_disabled(caplog: pytest.LogCaptureFixture) -> None:
    assert options("--disabled-metrics=a,,b").disabled == {"a", "b"}
    assert [record.getMessage() for record in caplog.records] == [
        "Attempted to disable an empty metric name, ignoring."
    ]


def test_values_of_labels_are_allowed_by_the_flag() -> None:
    found = options(f"--allow-metric-labels={ATTEMPTS},result=scheduled,error").allowed_values
    assert found == {(ATTEMPTS, "result"): frozenset({"scheduled", "error"})}


@pytest.mark.parametrize(
    "content",
    [
        f'"{ATTEMPTS},result": "scheduled,error"\n',
        f'{{"{ATTEMPTS},result": "scheduled,error"}}',
    ],
)
def test_values_of_labels_are_allowed_by_a_manifest(content: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest"
    manifest.write_text(content)
    found = options(f"--allow-metric-labels-manifest={manifest}").allowed_values
    assert found == {(ATTEMPTS, "result"): frozenset({"scheduled", "error"})}


def test_the_flag_takes_precedence_over_the_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest"
    manifest.write_text('"a,b": "c"')
    found = options(f"--allow-metric-labels-manifest={manifest}", "--allow-metric-labels=d,e=f").allowed_values
    assert set(found) == {("d", "e")}


def test_an_empty_manifest_is_ignored_with_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manifest = tmp_path / "manifest"
    manifest.write_text("")
    assert options(f"--allow-metric-labels-manifest={manifest}").allowed_values == {}
    assert caplog.messages == ["empty allow-list mapping supplied, ignoring."]
