from trio_sched.plugin_api import QueuedPod
from trio_sched.testing import make_plugin, pod


def test_the_most_important_pod_is_first_then_the_one_that_waits_longest() -> None:
    sort = make_plugin("PrioritySort").queue_sort
    queued = [
        QueuedPod(pod("young", priority=5), timestamp=9.0),
        QueuedPod(pod("none"), timestamp=1.0),
        QueuedPod(pod("low", priority=-3), timestamp=0.0),
        QueuedPod(pod("old", priority=5), timestamp=2.0),
    ]
    assert [each.pod.name for each in sorted(queued, key=sort)] == ["old", "young", "none", "low"]
