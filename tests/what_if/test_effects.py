import pytest
from attrs import evolve

from trio_sched.what_if.effects import Effect, PodState, effects_of

WEB = PodState(key="shop/web-1", uid="1", workload="Deployment shop/web", owner="rs", is_of_node=False, node="n1")


class NothingElse:
    waiting = ()
    evictions = ()


def effects(before: list[PodState], after: list[PodState]) -> list[Effect]:
    then, now = ({one.uid: one for one in states} for states in (before, after))
    return effects_of(then, now, NothingElse())  # type: ignore[arg-type]  # what it reads of an outcome


def named(name: str, uid: str, node: str) -> PodState:
    return evolve(WEB, key=f"shop/{name}", uid=uid, node=node)


def test_pods_of_the_same_workload_take_the_place_of_those_that_are_gone() -> None:
    before = [WEB, named("web-2", "2", "n1"), named("web-3", "3", "n2")]
    found = effects(before, [before[2], named("web-4", "4", "n3"), named("web-5", "5", "")])
    assert [(one.pod, one.replacement, one.node) for one in found] == [
        ("shop/web-2", "shop/web-5", ""),
        ("shop/web-1", "shop/web-4", "n3"),
    ]
    assert [one.is_lost for one in found] == [True, False]


def test_a_workload_that_keeps_names_gives_each_pod_its_own_place() -> None:
    before = [WEB, named("web-2", "2", "n2")]
    found = effects(before, [named("web-2", "4", "n3"), named("web-1", "5", "n4")])
    assert [(one.pod, one.replacement, one.node) for one in found] == [
        ("shop/web-1", "shop/web-1", "n4"),
        ("shop/web-2", "shop/web-2", "n3"),
    ]


def test_pods_of_other_workloads_take_no_place() -> None:
    other = evolve(WEB, key="shop/other-1", uid="9", owner="other", workload="Deployment shop/other", node="n2")
    (gone, new) = effects([WEB], [other])
    assert (gone.is_gone, gone.is_lost, gone.replacement) == (True, True, "")
    assert (new.existed, new.replacement, new.is_lost) == (False, "shop/other-1", False)


@pytest.mark.parametrize(("node", "lost"), [("n1", True), ("", False)])
def test_only_who_had_a_node_has_lost_one(node: str, lost: bool) -> None:
    (found,) = effects([evolve(WEB, node=node)], [])
    assert found.is_lost is lost


def test_pods_of_daemon_sets_come_and_go_with_their_nodes() -> None:
    agent = evolve(WEB, is_of_node=True)
    assert effects([agent], [evolve(agent, uid="2", key="shop/agent-2")]) == []


def test_a_pending_pod_that_gets_a_node_is_its_own_replacement() -> None:
    (found,) = effects([evolve(WEB, node="")], [WEB])
    assert (found.pod, found.replacement, found.was_on, found.node) == ("shop/web-1", "shop/web-1", "", "n1")
    assert effects([WEB], [WEB]) == []
