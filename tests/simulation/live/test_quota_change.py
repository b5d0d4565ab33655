"""The command that lets a workload create its pods beyond a quota."""

import pytest

from trio_sched.simulation.live.quota_change import larger_quota

REFUSED = 'pods "web-1" is forbidden: exceeded quota: '


@pytest.mark.parametrize(
    ("message", "pods", "hard"),
    [
        ("team, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1", 1, '"requests.cpu":"2"'),
        ("team, requested: pods=1, used: pods=4, limited: pods=4", 3, '"pods":"7"'),
        (
            "team, requested: cpu=500m,memory=1Gi, used: cpu=1,memory=1Gi, limited: cpu=1,memory=8Gi",
            2,
            '"cpu":"2"',
        ),
    ],
)
def test_what_is_exceeded_is_raised_to_what_is_needed(message: str, pods: int, hard: str) -> None:
    command = larger_quota(REFUSED + message, "shop", pods)
    assert command == f"""kubectl patch resourcequota team -n shop --type=merge -p '{{"spec":{{"hard":{{{hard}}}}}}}'"""


@pytest.mark.parametrize(
    "message", ["it is suspended", REFUSED + "team, requested: cpu=x, used: cpu=1, limited: cpu=1"]
)
def test_of_other_messages_nothing_is_said(message: str) -> None:
    assert larger_quota(message, "shop", 1) == ""
