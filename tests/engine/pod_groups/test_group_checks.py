"""What keeps a group from being tried, in both versions."""

from typing import Any

import pytest
from gangs import member

from trio_sched.engine.pod_groups.group_checks import SAME_SCHEDULER, UNIFORM, UNIFORM_WITH_POLICY
from trio_sched.testing import pod_group

GROUP = pod_group("g", priority=5)
SAME = "all pods in a single pod group should have the same"


@pytest.mark.parametrize(
    ("other", "before", "since"),
    [
        ({}, "", ""),
        ({"preemption_policy": "PreemptLowerPriority"}, "", ""),
        (
            {"scheduler_name": "mine"},
            f'{SAME} .spec.schedulerName set, got: "default-scheduler" and "mine"',
            f'{SAME} .spec.schedulerName set, got: "mine" and "default-scheduler"',
        ),
        ({"priority": 6}, "", f"{SAME} priority as the pod group's priority, got 6 and 5"),
        (
            {"preemption_policy": "Never"},
            "",
            f"{SAME} preemption policy, got Never and PreemptLowerPriority",
        ),
    ],
)
def test_pods_that_differ(other: dict[str, Any], before: str, since: str) -> None:
    one, second = member("a", "g", priority=5), member("b", "g", **{"priority": 5, **other})
    assert SAME_SCHEDULER.problem(GROUP, [one, second], []) == before
    assert UNIFORM.problem(GROUP, [one, second], []) == since
    assert SAME_SCHEDULER.problem(GROUP, [one], [second]) == ""
    assert UNIFORM.problem(GROUP, [one], [second]) == since


def test_a_group_that_is_gone_has_no_priority() -> None:
    one = member("a", "g", priority=5)
    assert SAME_SCHEDULER.problem(None, [one], []) == ""
    assert UNIFORM.problem(None, [one], []) == 'podgroup.scheduling.k8s.io "g" not found'
    assert UNIFORM.problem(pod_group("g"), [one], []) == f"{SAME} priority as the pod group's priority, got 5 and 0"


@pytest.mark.parametrize("policy", [None, "PreemptLowerPriority", "Never"])
def test_with_the_gate_the_preemption_policy_of_the_group_counts(policy: str | None) -> None:
    group, of_group = pod_group("g", priority=5, preemption_policy=policy), policy or "PreemptLowerPriority"
    for own in (None, "PreemptLowerPriority", "Never"):
        one, of_pod = member("a", "g", priority=5, preemption_policy=own), own or "PreemptLowerPriority"
        text = f"{SAME} preemption policy as the pod group's preemption policy, got {of_pod} and {of_group}"
        expected = "" if of_pod == of_group else text
        assert UNIFORM_WITH_POLICY.problem(group, [one], []) == expected
        assert UNIFORM.problem(group, [one], []) == ""
    placed = member("b", "g", priority=6)
    assert UNIFORM_WITH_POLICY.problem(group, [placed], []).startswith(f"{SAME} priority")
