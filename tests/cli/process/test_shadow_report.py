import json
from pathlib import Path

import pytest

from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.cli.process.shadow_report import report_shadow
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.engine.shadow.judgement import DecisionKind, Judgement, JudgementClass, Judgements, OtherDecision
from trio_sched.testing import pod

SCHEDULERS = frozenset(["default-scheduler"])


def judgements(*classes: JudgementClass) -> Judgements:
    found = Judgements()
    for number, judged in enumerate(classes):
        decision = OtherDecision(kind=DecisionKind.BINDING, pod=pod(f"p{number}"), node_name="n1")
        found.add(Judgement(decision=decision, judged=judged, own_nodes=("n2",), total=3, own_total=5, plugin="Fit"))
    return found


def test_the_table_counts_classes_and_lists_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    found = judgements(JudgementClass.SAME, JudgementClass.SAME, JudgementClass.DIFFERS)
    assert report_shadow(ShadowSettings(schedulers=SCHEDULERS), found) is ExitCode.OK
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["binding", "2", "0", "0", "0", "1", "0"] in lines
    assert ["default/p2", "binding", "n1", "3", "n2", "5", "Fit"] in lines


def test_the_exit_code_is_that_of_a_failure_if_a_class_is_not_wanted() -> None:
    settings = ShadowSettings(schedulers=SCHEDULERS, fail_on=frozenset([JudgementClass.DIFFERS]))
    assert report_shadow(settings, judgements(JudgementClass.TIE)) is ExitCode.OK
    assert report_shadow(settings, judgements(JudgementClass.TIE, JudgementClass.DIFFERS)) is ExitCode.FAILURE


def test_the_file_has_counts_and_what_is_not_the_same(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    settings = ShadowSettings(schedulers=SCHEDULERS, report_file=str(path))
    report_shadow(settings, judgements(JudgementClass.SAME, JudgementClass.TIE))
    written = json.loads(path.read_text())
    assert (written["decisions"], written["classes"]["tie"]) == (2, 1)
    assert [one["pod"] for one in written["notTheSame"]] == ["default/p1"]


def test_a_file_that_cannot_be_written_is_an_error_that_names_the_flag(tmp_path: Path) -> None:
    settings = ShadowSettings(schedulers=SCHEDULERS, report_file=str(tmp_path))
    with pytest.raises(ConfigError, match="--shadow-report: "):
        report_shadow(settings, judgements())
