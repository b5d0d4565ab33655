import weakref
from random import Random

from trio_sched.engine.queue.pod_heap import PodHeap
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.testing import pod


def heap() -> PodHeap:
    return PodHeap(lambda info: info.sort_key)


def info(name: str, key: int) -> QueuedPodInfo:
    return QueuedPodInfo(pod(name), 0.0, sort_key=key)


def test_the_smallest_key_comes_first_and_equal_keys_in_order_of_arrival() -> None:
    pods = heap()
    for name, key in (("a", 2), ("b", 1), ("c", 1), ("d", 0)):
        pods.push(info(name, key))
    assert [each.pod.name for each in pods] == ["d", "b", "c", "a"]
    popped = [pods.pop() for _ in range(5)]
    assert [each.pod.name if each else None for each in popped] == ["d", "b", "c", "a", None]


def test_any_pod_can_be_removed_by_its_key() -> None:
    pods = heap()
    pods.push(info("a", 1))
    pods.push(info("b", 2))
    assert "default/a" in pods
    removed = pods.remove("default/a")
    assert removed is not None
    assert removed.pod.name == "a"
    assert pods.remove("default/a") is None
    assert pods.get("default/a") is None
    first = pods.peek()
    assert first is not None
    assert (first.pod.name, len(pods)) == ("b", 1)


def test_pushing_again_reorders_the_pod() -> None:
    pods = heap()
    moving = info("a", 1)
    pods.push(moving)
    pods.push(info("b", 2))
    moving.sort_key = 3
    pods.push(moving)
    assert [each.pod.name for each in pods] == ["b", "a"]
    assert len(pods) == 2
    first, second, third = pods.pop(), pods.pop(), pods.pop()
    assert (first and first.pod.name, second and second.pod.name, third) == ("b", "a", None)


def test_it_pops_in_the_order_of_a_sorted_list_after_any_operations() -> None:
    rng = Random(3)
    pods, model = heap(), dict[str, QueuedPodInfo]()
    for step in range(3000):
        name = f"p{rng.randrange(300)}"
        if rng.random() < 0.45:
            model[f"default/{name}"] = new = info(name, rng.randrange(10**6) * 4096 + step)
            pods.push(new)
        elif rng.random() < 0.8:
            assert pods.remove(f"default/{name}") is model.pop(f"default/{name}", None)
        elif model:
            first = min(model.values(), key=lambda each: each.sort_key)
            assert pods.pop() is first
            del model[first.key]
        assert len(pods) == len(model)
    assert list(pods) == sorted(model.values(), key=lambda each: each.sort_key)


def test_a_heap_without_pods_keeps_none_of_those_that_were_removed() -> None:
    pods, removed = heap(), info("a", 1)
    pods.push(removed)
    pods.remove(removed.key)
    kept = weakref.ref(removed)
    del removed
    assert kept() is None
