from trio_sched.plugin_api import QueuedPod
from trio_sched.testing import make_plugin, pod


def test_pods_are_sorted_by_priority_and_then_by_queueing_time() -> None:
    sort = make_plugin("PrioritySort").queue_sort
    queued = [
        QueuedPod(pod("young", priority=5), timestamp=9.0),
        QueuedPod(pod("none"), timestamp=1.0),
        QueuedPod(pod("low", priority=-3), timestamp=0.0),
        QueuedPod(pod("old", priority=5), timestamp=2.0),
    ]
    assert [each.pod.name for each in sorted(queued, key=sort)] == ["old", "young", "none", "low"]
