from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_usage
from trio_sched.snapshot.placed_pod import PlacedPod


def placed(pod: Pod) -> PlacedPod:
    """*pod* as a node's row counts it."""
    return PlacedPod(pod, pod_usage(pod))
