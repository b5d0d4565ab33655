import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.storage.selectors import (
    SelectorError,
    both,
    field_selector,
    label_selector,
)


def labelled(**labels: str) -> Json:
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("app=x", True),
        ("app==x", True),
        ("app=y", False),
        ("app!=y", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("app in (x, y)", True),
        ("app in (y)", False),
        ("app notin (y,z)", True),
        ("other notin (y)", True),
        ("other!=y", True),
        ("app=x,tier=front", True),
        ("app=x,tier=back", False),
        ("app in (x,y),tier!=back,!other", True),
        ("size>3", True),
        ("size<3", False),
        ("app>3", False),
    ],
)
def test_label_selectors_select_as_documented(selector: str, selected: bool) -> None:
    predicate = label_selector(selector)
    assert predicate is not None
    assert predicate(labelled(app="x", tier="front", size="5")) is selected


def test_an_empty_label_selector_selects_everything() -> None:
    assert label_selector("") is None


@pytest.mark.parametrize("selector", ["=x", "app in x", "app=x y", "size>big"])
def test_unreadable_label_selectors_are_refused(selector: str) -> None:
    with pytest.raises(SelectorError):
        label_selector(selector)


def test_pods_are_selected_by_node_and_phase() -> None:
    predicate = field_selector("spec.nodeName=n1,status.phase!=Succeeded", "pods")
    assert predicate is not None
    pod: Json = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    assert predicate(pod)
    assert not predicate({**pod, "status": {"phase": "Succeeded"}})
    assert not predicate({**pod, "spec": {}})


def test_nodes_are_schedulable_by_default() -> None:
    predicate = field_selector("spec.unschedulable=false", "nodes")
    assert predicate is not None
    assert predicate({"metadata": {}, "spec": {}})
    assert not predicate({"metadata": {}, "spec": {"unschedulable": True}})


def test_a_comma_may_be_escaped() -> None:
    predicate = field_selector("reason=a\\,b", "events")
    assert predicate is not None
    assert predicate({"metadata": {}, "reason": "a,b"})


def test_unknown_fields_are_refused_by_name() -> None:
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.colour"):
        field_selector("spec.colour=red", "pods")


def test_both_selects_what_each_selects() -> None:
    chosen = both(label_selector("app=x"), field_selector("metadata.name=p", "pods"))
    assert chosen is not None
    assert chosen({"metadata": {"name": "p", "labels": {"app": "x"}}})
    assert not chosen({"metadata": {"name": "q", "labels": {"app": "x"}}})
    assert both(None, None) is None
