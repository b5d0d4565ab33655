from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.snapshot.pod_info import PodInfo


def pod_info(pod: Pod) -> PodInfo:
    """*pod* as a node's row counts it."""
    return PodInfo(pod, pod_resources(pod))
