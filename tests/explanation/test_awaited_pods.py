"""Pods that have to be near to pods that are pending themselves."""

from filled_scheduler import scheduler_with

from trio_sched.explanation.commands import commands
from trio_sched.explanation.data import cause_text
from trio_sched.explanation.explanation import Explanation, explain
from trio_sched.explanation.touches import Touch
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, owner_reference, pod, pod_affinity, pod_term

NEAR = pod_affinity(pod_term("app=cache"))
CACHE = {"app": "cache"}


def explained(*pods: Pod, taints: tuple[str, ...] = ()) -> Explanation:
    """The first of *pods*, on one node of 4 CPU."""
    made = node("a", cpu="4", labels={"kubernetes.io/hostname": "a"}, taints=taints)
    scheduler = scheduler_with([made], pods)
    found = explain(scheduler, pods[0])
    # Nothing that was tried is left.
    assert {one.key: one.spec for one in scheduler.cache.unassigned.pods()} == {one.key: one.spec for one in pods}
    assert not list(scheduler.cache)
    return found


def titles(found: Explanation) -> list[str]:
    return [one.change.title for one in found.remedies.found]


def test_the_other_pod_is_named_with_what_keeps_it_and_what_lets_it_run() -> None:
    asked = pod("asked", affinity=NEAR)
    found = explained(asked, pod("cache", labels=CACHE, node_selector={"disk": "ssd"}))
    assert cause_text(found).endswith(
        "default/cache does, and is pending itself (node selector disk=ssd), so it has to run first"
    )
    first = found.remedies.found[0]
    assert (first.change.title, first.touches) == ("first let default/cache run: label a disk=ssd", Touch.NODE)
    assert commands(first.edited, asked, None) == ["kubectl label node a disk=ssd"]
    assert "no required pod affinity to app=cache" in titles(found)


def test_the_other_pod_leaves_room() -> None:
    """With all that is free for the other pod there would be nothing left for the pod in question."""
    cache = pod("cache", cpu="8", labels=CACHE)
    assert titles(explained(pod("asked", cpu="1", affinity=NEAR), cache)) == ["no required pod affinity to app=cache"]
    assert titles(explained(pod("asked", affinity=NEAR), cache))[0] == "first let default/cache run: request cpu ≤ 4"


def test_the_template_of_another_workload_is_changed() -> None:
    owner, labels = owner_reference("ReplicaSet", "cache-7f"), {**CACHE, "pod-template-hash": "7f"}
    caches = [pod(f"cache-7f-{name}", cpu="2", labels=labels, owner=owner) for name in "ab"]
    asked = pod("asked", affinity=NEAR)
    found = explained(asked, *caches, taints=("gpu:NoSchedule",))
    assert "(cache-7f-a: taint gpu), so one has to run first" in cause_text(found)
    tolerated = pod("asked", affinity=NEAR, tolerations=["gpu"])
    found = explained(tolerated, *caches, taints=("gpu:NoSchedule",))
    (remedy,) = (one for one in found.remedies.found if one.change.title.endswith("run: tolerate gpu"))
    (command,) = commands(remedy.edited, tolerated, None)
    assert command.startswith("kubectl patch deployment cache -n default -p ")


def test_a_pod_that_fits_comes_first() -> None:
    found = explained(pod("asked", affinity=NEAR), pod("cache", labels=CACHE))
    assert "default/cache does, and is pending itself (it fits a now), so it has to run first" in cause_text(found)


def test_pods_that_wait_for_each_other_are_explained_once() -> None:
    found = explained(
        pod("asked", labels={"app": "web"}, affinity=NEAR),
        pod("cache", labels=CACHE, affinity=pod_affinity(pod_term("app=web"))),
    )
    assert "pending itself (pod affinity to app=web in hostname)" in cause_text(found)
    assert titles(found) == [
        "no required pod affinity to app=cache",
        "first let default/cache run: no required pod affinity to app=web",
    ]
