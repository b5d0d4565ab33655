from trio_sched.engine.shadow.judgement import (
    MAX_LISTED,
    DecisionKind,
    Judgement,
    JudgementClass,
    Judgements,
    OtherDecision,
)
from trio_sched.testing import pod


def judgement(name: str, judged: JudgementClass, kind: DecisionKind = DecisionKind.BINDING) -> Judgement:
    return Judgement(decision=OtherDecision(kind=kind, pod=pod(name), node_name="n"), judged=judged)


def test_all_are_counted_and_only_the_last_that_are_not_the_same_are_kept() -> None:
    found = Judgements()
    for number in range(MAX_LISTED + 5):
        found.add(judgement(f"same-{number}", JudgementClass.SAME))
        found.add(judgement(f"tie-{number}", JudgementClass.TIE))
    found.add(judgement("refused", JudgementClass.DIFFERS, DecisionKind.REFUSAL))
    assert found.count([JudgementClass.SAME]) == found.count([JudgementClass.TIE]) == MAX_LISTED + 5
    assert found.by_class(DecisionKind.REFUSAL)[JudgementClass.DIFFERS] == 1
    assert [one.decision.pod.name for one in found.listed][:1] == ["tie-6"]
    assert len(found.listed) == MAX_LISTED


def test_what_is_empty_is_not_shown() -> None:
    shown = judgement("p", JudgementClass.TIE).as_fields()
    assert shown == {
        "pod": "default/p",
        "profile": "default-scheduler",
        "decision": "binding",
        "class": "tie",
        "node": "n",
    }
