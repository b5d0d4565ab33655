from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.unschedulable_pods import UnschedulablePods
from trio_sched.testing import pod


def info(name: str, *plugins: str, pending: str = "") -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name), 0.0, unschedulable_plugins=set(plugins), pending_plugins={pending} if pending else set()
    )


def test_pods_are_found_by_their_rejectors_each_once() -> None:
    pods = UnschedulablePods()
    a, b, c = info("a", "X", "Y"), info("b", "Y"), info("c", pending="Z")
    for each in (a, b, c):
        pods.put(each)
    assert pods.rejected_by(["X", "Y"]) == [a, b]
    assert pods.rejected_by(["Z", "nobody"]) == [c]
    assert list(pods.values()) == [a, b, c]
    assert ("default/a" in pods, pods.get("default/b"), len(pods)) == (True, b, 3)


def test_putting_a_pod_again_indexes_its_new_rejectors() -> None:
    pods = UnschedulablePods()
    a = info("a", "X")
    pods.put(a)
    a.unschedulable_plugins = {"Y"}
    pods.put(a)
    assert (pods.rejected_by(["X"]), pods.rejected_by(["Y"])) == ([], [a])


def test_removing_a_pod_works_after_its_rejectors_have_changed() -> None:
    pods = UnschedulablePods()
    a = info("a", "X")
    pods.put(a)
    a.unschedulable_plugins.clear()
    assert pods.remove("default/a") is a
    assert pods.remove("default/a") is None
    assert pods.rejected_by(["X"]) == []
