from typing import Any

import pytest

from trio_sched.objects.disruption_budget import DisruptionBudgetSpec, DisruptionBudgetStatus, PodDisruptionBudget
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.plugin_api.preemption import PdbAllowance, budgets_of
from trio_sched.testing import pod

DB = LabelSelector(match_labels={"app": "db"})


def budget(
    allowed: int = 0, selector: LabelSelector | None = DB, *disrupted: str, namespace: str = "default"
) -> PodDisruptionBudget:
    gone = dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
    return PodDisruptionBudget(
        ObjectMeta("budget", namespace), DisruptionBudgetSpec(selector), DisruptionBudgetStatus(allowed, gone or None)
    )


def db(name: str = "p", **more: Any) -> Pod:
    return pod(name, **{"labels": {"app": "db"}, **more})


def violations(*pods: Pod, budgets: list[PodDisruptionBudget]) -> list[bool]:
    account = PdbAllowance(budgets_of(budgets))
    return [account.count_victim(one) for one in pods]


@pytest.mark.parametrize(("allowed", "expected"), [(0, [True, True]), (1, [False, True]), (2, [False, False])])
def test_a_budget_is_used_up_by_one_pod_after_the_other(allowed: int, expected: list[bool]) -> None:
    assert violations(db("a"), db("b"), budgets=[budget(allowed)]) == expected


@pytest.mark.parametrize(
    ("one", "of"),
    [
        (db(namespace="other"), budget()),
        (pod(labels={"app": "web"}), budget()),
        (pod(), budget(0, LabelSelector(match_expressions=(LabelSelectorRequirement("app", "DoesNotExist"),)))),
        (db("gone"), budget(0, DB, "gone")),
    ],
    ids=["another namespace", "other labels", "no labels at all", "taken account of already"],
)
def test_pods_that_a_budget_does_not_concern(one: Pod, of: PodDisruptionBudget) -> None:
    assert violations(one, budgets=[of]) == [False]


def test_pods_that_do_not_count_leave_the_budget_to_others() -> None:
    of = budget(1, DB, "gone")
    assert violations(db("gone"), db("elsewhere", namespace="other"), db("a"), db("b"), budgets=[of]) == [
        False,
        False,
        False,
        True,
    ]


def test_every_budget_that_concerns_a_pod_is_drawn_on_even_if_one_is_overdrawn() -> None:
    track = LabelSelector(match_labels={"track": "x"})
    both, only_track = db("both", labels={"app": "db", "track": "x"}), pod("track", labels={"track": "x"})
    assert violations(both, only_track, budgets=[budget(0), budget(1, track)]) == [True, True]
    assert violations(only_track, both, budgets=[budget(0), budget(2, track)]) == [False, True]


@pytest.mark.parametrize(
    "selector",
    [None, LabelSelector(), LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))],
    ids=["missing", "empty", "does not parse"],
)
def test_budgets_whose_selector_says_nothing_concern_nobody(selector: LabelSelector | None) -> None:
    assert budgets_of([budget(0, selector)]) == {}
    assert violations(db(), budgets=[budget(0, selector)]) == [False]


def test_each_account_begins_with_the_whole_budget() -> None:
    budgets = budgets_of([budget(1)])
    for _ in range(2):
        account = PdbAllowance(budgets)
        assert [account.count_victim(db("a")), account.count_victim(db("b"))] == [False, True]
