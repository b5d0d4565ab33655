from trio_sched.plugin_api import Diagnosis, NodeStatuses, Status, unresolvable, unschedulable
from trio_sched.plugin_api.fit_error import fit_error


def diagnosis(statuses: dict[str, Status], absent: Status, total: int, **more: str) -> Diagnosis:
    return Diagnosis(NodeStatuses.of(statuses, absent), total_nodes=total, **more)


def test_reasons_are_counted_and_sorted_as_text() -> None:
    full = {f"n{i}": unschedulable("Insufficient cpu", "Too many pods") for i in range(10)}
    tainted = {f"t{i}": unresolvable("node(s) had untolerated taint(s)") for i in range(2)}
    assert fit_error(diagnosis({**full, **tainted}, unresolvable(), 12)) == (
        "0/12 nodes are available: 10 Insufficient cpu, 10 Too many pods, 2 node(s) had untolerated taint(s)."
    )


def test_nodes_that_nobody_looked_at_count_with_the_common_reason() -> None:
    text = fit_error(diagnosis({"a": unschedulable("full")}, unresolvable("not asked"), 4))
    assert text == "0/4 nodes are available: 1 full, 3 not asked."
    assert fit_error(diagnosis({"a": unschedulable("full")}, unresolvable(), 4)) == "0/4 nodes are available: 1 full."


def test_without_any_reason_it_ends_with_the_colon() -> None:
    assert fit_error(diagnosis({}, unresolvable(), 3)) == "0/3 nodes are available:"


def test_what_pre_filter_says_stands_for_all_nodes_and_post_filter_has_the_last_word() -> None:
    text = fit_error(
        diagnosis({}, unresolvable("x"), 3, pre_filter_message="no such claim", post_filter_message="Giving up.")
    )
    assert text == "0/3 nodes are available: no such claim. Giving up."


def test_the_same_reason_given_by_different_statuses_adds_up() -> None:
    statuses = {"a": unschedulable("full"), "b": unresolvable("full"), "c": unschedulable("full", "old")}
    assert fit_error(diagnosis(statuses, unresolvable(), 3)) == "0/3 nodes are available: 1 old, 3 full."
