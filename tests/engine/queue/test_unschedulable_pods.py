from typing import Any

from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.unschedulable_pods import UnschedulablePods
from trio_sched.testing import pod


def info(name: str, *plugins: str, pending: str = "", **fields: Any) -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name, **fields), 0.0, unschedulable_plugins=set(plugins), pending_plugins={pending} if pending else set()
    )


def rejected_by(pods: UnschedulablePods, *plugins: str) -> list[QueuedPodInfo]:
    return [one for group in pods.rejected_by(plugins) for one in group.pods.values()]


def test_pods_are_found_by_their_rejectors_each_once() -> None:
    pods = UnschedulablePods()
    a, b, c = info("a", "X", "Y"), info("b", "Y"), info("c", pending="Z")
    for each in (a, b, c):
        pods.put(each)
    assert rejected_by(pods, "X", "Y") == [a, b]
    assert rejected_by(pods, "Z", "nobody") == [c]
    assert list(pods.values()) == [a, b, c]
    assert ("default/a" in pods, pods.get("default/b"), len(pods)) == (True, b, 3)


def test_putting_a_pod_again_indexes_its_new_rejectors() -> None:
    pods = UnschedulablePods()
    a = info("a", "X")
    pods.put(a)
    a.unschedulable_plugins = {"Y"}
    pods.put(a)
    assert (rejected_by(pods, "X"), rejected_by(pods, "Y")) == ([], [a])


def test_removing_a_pod_works_after_its_rejectors_have_changed() -> None:
    pods = UnschedulablePods()
    a = info("a", "X")
    pods.put(a)
    a.unschedulable_plugins.clear()
    assert pods.remove("default/a") is a
    assert pods.remove("default/a") is None
    assert pods.rejected_by(["X"]) == []


def groups_of(*infos: QueuedPodInfo) -> list[list[str]]:
    pods = UnschedulablePods()
    for each in infos:
        pods.put(each)
    found = [[one.pod.name for one in group.pods.values()] for group in pods.rejected_by(["X", "Y"])]
    for each in infos:
        pods.remove(each.key)
    assert pods.rejected_by(["X", "Y"]) == []
    return found


def signed(name: str, *plugins: str, signature: tuple[Any, ...] = ("s",), **fields: Any) -> QueuedPodInfo:
    made = info(name, *plugins, **fields)
    made.signature = signature
    return made


def test_pods_with_equal_signature_priority_and_rejectors_are_a_group() -> None:
    assert groups_of(signed("a", "X"), signed("b", "X"), signed("c", "X", "Y")) == [["a", "b"], ["c"]]
    assert groups_of(signed("a", "X"), signed("b", "X", signature=("t",))) == [["a"], ["b"]]
    assert groups_of(signed("a", "X"), signed("b", "X", priority=1)) == [["a"], ["b"]]
    assert groups_of(signed("a", "X"), signed("b", "X", preemption_policy="Never")) == [["a"], ["b"]]
    assert groups_of(info("a", "X"), info("b", "X")) == [["a"], ["b"]]


def test_a_signature_that_cannot_be_compared_makes_no_group() -> None:
    class Odd:
        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

    assert groups_of(signed("a", "X", signature=(Odd(),)), signed("b", "X", signature=(Odd(),))) == [["a"], ["b"]]
