"""What is said of pods that extenders keep from the nodes which the plugins accept."""

from filled_scheduler import scheduler_with

from trio_sched.engine.evaluation.extender_cycle import ExtenderVerdict
from trio_sched.explanation.data import cause_text, explanation_as_data
from trio_sched.explanation.explanation import Explanation, explain
from trio_sched.explanation.extenders import add_extenders
from trio_sched.testing import node, pod

URL = "http://quota.test"


def explained(*verdicts: ExtenderVerdict) -> Explanation:
    asked = pod("p", cpu="1")
    scheduler = scheduler_with([node("a"), node("b"), node("c", unschedulable=True)], [asked])
    found = explain(scheduler, asked)
    assert found.fits_now
    add_extenders(found, verdicts)
    return found


def test_what_extenders_refuse_is_a_requirement_like_any_other() -> None:
    found = explained(
        ExtenderVerdict(name=URL, refused={"a": "over quota"}),
        ExtenderVerdict(name="http://other.test", refused={"b": "", "gone": "is not here"}),
    )
    assert not found.fits_now
    data = explanation_as_data(found)
    assert data["passing"] == 0
    assert {clause["title"]: clause["pass"] for clause in data["clauses"]} == {
        f"extender {URL}": 2,
        "extender http://other.test": 2,
        "cordoned": 2,
    }
    assert set(data["cause"]["reasons"]) <= {"ExtenderRefuses", "NodeCordoned"}


def test_an_extender_that_cannot_be_asked_is_the_cause() -> None:
    found = explained(ExtenderVerdict(name=URL, refused={}, problem="connection refused"))
    data = explanation_as_data(found)
    assert data["cause"]["reasons"] == ["ExtenderFailed"]
    assert cause_text(found).startswith(
        f"extender {URL}. 2 of 3 nodes pass everything else; it has a say in this pod, and could not be asked from here"
    )


def test_one_that_may_be_ignored_is_mentioned_only() -> None:
    found = explained(
        ExtenderVerdict(name=URL, refused={}, problem="connection refused", is_ignorable=True),
        ExtenderVerdict(name="http://other.test", refused={explained().outcome.node_name: "not today"}),
    )
    assert found.fits_now  # on the other node
    assert found.outcome.node_name not in ("", explained().outcome.node_name)
    assert found.notes == [f"the extender {URL} may be ignored, and could not be asked: connection refused"]
