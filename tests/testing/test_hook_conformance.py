from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trio_sched.plugin_api import (
    NodeColumns,
    PostFilterResult,
    PreFlight,
    Status,
    Verdicts,
    Wait,
    failure,
    hookimpl,
    unschedulable,
)
from trio_sched.testing import NotConforming, check_conformance


def problems_of(**hooks: Callable[..., Any]) -> tuple[str, ...]:
    members: dict[str, Any] = {"name": "Checked", "__init__": lambda self, args, handle: None}
    for name, function in hooks.items():
        function.__name__ = name
        members[name] = hookimpl(function)
    try:
        check_conformance(type("Checked", (), members))
    except NotConforming as found:
        return found.problems
    return ()


@pytest.mark.parametrize(
    ("hook", "answer", "problem"),
    [
        ("pre_enqueue", False, "pre_enqueue returned bool"),
        ("queue_sort", None, "queue_sort returned NoneType, which has no order"),
        ("sign", [], ""),
        ("reserve", True, "reserve returned bool"),
        ("permit", 5.0, "permit returned float"),
        ("permit", Wait("5"), "permit returned a Wait whose timeout_seconds is str"),  # type: ignore[arg-type]
        ("pre_bind_pre_flight", PreFlight("yes"), "a PreFlight whose allow_parallel is str"),  # type: ignore[arg-type]
        ("post_filter", unschedulable("no"), "post_filter returned Status"),
        ("post_filter", PostFilterResult("no"), "post_filter returned str"),  # type: ignore[arg-type]
        ("pre_bind", 0, "pre_bind returned int"),
        ("bind", "bound", "bind returned str"),
    ],
)
def test_wrong_answers_of_any_hook_are_found(hook: str, answer: Any, problem: str) -> None:
    if hook == "queue_sort":
        found = problems_of(queue_sort=lambda self: answer)
    else:
        also = {"pre_bind": lambda self: None} if hook == "pre_bind_pre_flight" else {}
        found = problems_of(**also, **{hook: lambda self, pod: answer})
    assert found == () if not problem else problem in found[0]


def test_hooks_that_may_be_async_are_called_too() -> None:
    async def pre_bind(self: Any) -> bool:
        return True

    async def bind(self: Any) -> Status | None:
        raise LookupError("no server")

    found = problems_of(pre_bind=pre_bind, bind=bind)
    assert "pre_bind returned bool" in found[0]
    assert "bind raised LookupError: no server" in found[1]


def test_a_filter_that_fails_on_nodes_must_say_so() -> None:
    def verdicts(nodes: NodeColumns, *, may_fail: bool) -> Verdicts:
        return Verdicts(np.arange(len(nodes)) % 2, lambda _code: failure("cannot look"), may_fail=may_fail)

    silent = problems_of(filter=lambda self, nodes: verdicts(nodes, may_fail=False))
    assert any("filter fails on single nodes, so its Verdicts must say may_fail=True" in each for each in silent)


def test_codes_without_an_explanation_are_found() -> None:
    def explained_wrongly(self: Any, nodes: NodeColumns) -> Verdicts:
        return Verdicts(np.ones(len(nodes), dtype=np.int64), lambda _code: "no")  # type: ignore[arg-type,return-value]

    assert "that explain the code 1 by str" in problems_of(filter=explained_wrongly)[0]


def test_a_plugin_that_keeps_to_its_hooks_is_fine() -> None:
    assert (
        problems_of(
            reserve=lambda self: None,
            unreserve=lambda self: None,
            permit=lambda self: Wait(5),
            pre_bind_pre_flight=lambda self: PreFlight(allow_parallel=True),
            pre_bind=lambda self: None,
            post_filter=lambda self: PostFilterResult(unschedulable("no")),
        )
        == ()
    )
