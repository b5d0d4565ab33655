"""Pod Security admission: which pods a namespace takes, by its labels.

The level ``enforce`` refuses pods, also those that controllers make; ``warn`` (by default the same) answers requests
for pods and workloads with warnings. Source: k8s.io/pod-security-admission of Kubernetes 1.36, as the API server has it
by default: nothing is enforced without labels, and nobody is exempt.

`baseline` and `restricted` are the Pod Security Standards, which have changed from version to version; namespaces
choose one.
"""

from trio_sched.simulator.admission.pod_security.admission import check_pod, check_pod_change, warnings

__all__ = ["check_pod", "check_pod_change", "warnings"]
