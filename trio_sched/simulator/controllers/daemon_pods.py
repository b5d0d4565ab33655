"""The pods of DaemonSets: how they are tied to their nodes, and which of a node is new."""

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from trio_sched.simulator.controllers.revision_history import REVISION_LABEL
from trio_sched.simulator.object_store import StoredObject, copied

Json = dict[str, Any]

_GENERATION_LABEL: Final = "pod-template-generation"
_GENERATION: Final = "deprecated.daemonset.template.generation"
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
    generation = (stored.fields["metadata"].get("annotations") or {}).get(_GENERATION)
    if generation is not None:
        labels[_GENERATION_LABEL] = generation
    if digest:
        labels[REVISION_LABEL] = digest
    template["metadata"] = {**metadata, "labels": labels}
    return template


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
    def of(cls, pods: Sequence[StoredObject], digest: str) -> "NodePods":
        """*pods* by whether they are of the revision *digest*."""
        fresh = [pod for pod in pods if (pod.fields["metadata"].get("labels") or {}).get(REVISION_LABEL) == digest]
        stale = [pod for pod in pods if pod not in fresh]
        return cls(next(iter(fresh), None), next(iter(stale), None), [*fresh[1:], *stale[1:]])
