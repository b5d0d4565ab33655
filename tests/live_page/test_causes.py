"""Pods that fail alike have one cause."""

import pytest

from trio_sched.live_page.causes import shortened_reason
from trio_sched.live_page.names import OTHERS, GrowingNames


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("0/5 nodes are available: 5 Insufficient cpu.", "Insufficient cpu"),
        (
            "0/12 nodes are available: 8 node(s) had untolerated taint(s), 4 Insufficient memory. preemption: 0/12 "
            "nodes are available: 12 No preemption victims found for incoming pod.",
            "Insufficient memory, node(s) had untolerated taint(s)",
        ),
        ("0/3 nodes are available: 1 a, b, 2 c.", "a, b, c"),
        ('0/3 nodes are available: persistentvolumeclaim "x" not found.', 'persistentvolumeclaim "x" not found'),
        ("0/0 nodes are available: ", ""),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        ("x" * 1000, "x" * 300 + "… (1000 characters)"),
    ],
)
def test_counts_of_nodes_are_left_out(message: str, short: str) -> None:
    assert shortened_reason(message) == short


def test_names_beyond_the_limit_share_a_number() -> None:
    names = GrowingNames(3)
    assert [names.number(name) for name in ("a", "b", "c", "d", "a", "c")] == [0, 1, 2, 2, 0, 2]
    assert (names.names, names.get("b"), names.get("c")) == (["a", "b", OTHERS], 1, None)
