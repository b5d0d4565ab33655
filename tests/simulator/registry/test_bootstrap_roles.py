from typing import Any

import pytest

from trio_sched.simulator import allows_by_bootstrap_roles


def asked(path: str, *groups: str, verb: str = "get") -> dict[str, Any]:
    return {"groups": groups, "nonResourceAttributes": {"path": path, "verb": verb}}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        (asked("/version", "system:unauthenticated"), True),
        (asked("/apis/apps/v1", "system:unauthenticated"), False),
        (asked("/apis/apps/v1", "system:authenticated"), True),
        (asked("/metrics", "system:authenticated"), False),
        (asked("/metrics", "system:monitoring"), True),
        (asked("/metrics/resources", "system:monitoring"), False),
        (asked("/livez/ping", "system:monitoring"), True),
        (asked("/metrics", "system:monitoring", verb="post"), False),
        (asked("/x", "system:masters", verb="delete"), True),
        ({"groups": ["system:monitoring"], "resourceAttributes": {"verb": "get"}}, False),
        ({}, False),
    ],
)
def test_the_bootstrap_roles_decide(spec: dict[str, Any], allowed: bool) -> None:
    assert allows_by_bootstrap_roles(spec) is allowed
