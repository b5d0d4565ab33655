"""The pods of DaemonSets: how they are tied to their nodes, and which of a node is new."""

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.admission import TEMPLATE_GENERATION
from trio_sched.simulator.controllers.workloads.revision_history import REVISION_LABEL
from trio_sched.simulator.storage.object_store import StoredObject, copied

_GENERATION_LABEL: Final = "pod-template-generation"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_WITHOUT_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def daemon_template(stored: StoredObject, digest: str) -> Json:
    """The template of the pods of a DaemonSet, without a node."""
    template = copied(stored.fields["spec"]["template"])
    metadata, spec = template.get("metadata") or {}, template.setdefault("spec", {})
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in (*_TOLERATED, *([_WITHOUT_NETWORK] if spec.get("hostNetwork") else [])):
        same = [one for one in tolerations if one.get("key") == key and one.get("effect") == effect]
        if not any(one.get("operator") == "Exists" and "tolerationSeconds" not in one for one in same):
            tolerations = [one for one in tolerations if one not in same]
            tolerations.append({"key": key, "operator": "Exists", "effect": effect})
    spec["tolerations"] = tolerations
    labels = dict(metadata.get("labels") or {})
    generation = (stored.fields["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
    if generation is not None:
        labels[_GENERATION_LABEL] = generation
    if digest:
        labels[REVISION_LABEL] = digest
    template["metadata"] = {**metadata, "labels": labels}
    return template


@frozen
class PodRevision:
    """Which pods of a DaemonSet are of its current pod template.

    Attributes:
        digest: what their label says; empty if that is not known.
        generation: the generation of the template, by which pods that were adopted are known as well.
    """

    digest: str
    generation: str | None

    @classmethod
    def of(cls, stored: StoredObject, digest: str) -> "PodRevision":
        """The current one of a DaemonSet."""
        return cls(digest, (stored.fields["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION))

    def has(self, pod: StoredObject) -> bool:
        """Whether a pod is of it."""
        labels = pod.fields["metadata"].get("labels") or {}
        if self.digest and labels.get(REVISION_LABEL) == self.digest:
            return True
        return self.generation is not None and labels.get(_GENERATION_LABEL) == self.generation


def of_node(template: Json, node: str) -> Json:
    """*template* for the pod of one node: its name is all that the node affinity requires."""
    spec = template["spec"]
    affinity = spec.get("affinity") or {}
    rule = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
    of_nodes = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**template, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": of_nodes}}}


def node_of(fields: Json) -> str:
    """The node that a pod of a DaemonSet is on or meant for; empty if it is for none."""
    spec = fields["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for rule in term.get("matchFields") or ():
            if rule.get("key") == "metadata.name" and rule.get("values"):
                return str(rule["values"][0])
    return ""


@frozen
class NodePods:
    """The pods on one node that are not being deleted.

    Attributes:
        new: the first of the current pod template.
        old: the first of another one.
        others: all that are one too many.
    """

    new: StoredObject | None
    old: StoredObject | None
    others: Sequence[StoredObject]

    @classmethod
    def of(cls, pods: Sequence[StoredObject], revision: PodRevision) -> "NodePods":
        """*pods* by whether they are of a revision."""
        fresh = [pod for pod in pods if revision.has(pod)]
        stale = [pod for pod in pods if pod not in fresh]
        return cls(next(iter(fresh), None), next(iter(stale), None), [*fresh[1:], *stale[1:]])
