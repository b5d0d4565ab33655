"""A remedy as commands that can be pasted into a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from msgspec import to_builtins

from trio_sched.documents.json_values import Json
from trio_sched.explanation.owners import Workload as Workload
from trio_sched.explanation.owners import controller_of, is_of, workload_behind
from trio_sched.explanation.patches import PodPatch, patch_of, pod_patch
from trio_sched.explanation.trial import EditedObject
from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import is_of_workload, workload_and_group

API_VERSIONS: Final[Mapping[str, str]] = {
    "CSIDriver": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1",
    "CompositePodGroup": "scheduling.k8s.io/v1alpha3",
    "DeviceClass": "resource.k8s.io/v1",
    "Namespace": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PodGroup": "scheduling.k8s.io/v1alpha2",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
}
"""Kind → the version in which objects are written."""
_TEMPLATES: Final = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds whose template of pods can be changed."""
_KEEPS_PODS: Final = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Those that do not replace a pending pod when the template changes."""
REPLACES_PODS: Final = frozenset({"DaemonSet", "Deployment", "StatefulSet"})
"""Those that replace all of their pods when the template changes."""
_NEW_FIELDS: Final = frozenset({"schedulingGroup", "workloadRef"})
"""Fields of pods, no lists, of which a kubectl in use may know nothing."""
_STRATEGIC: Final = frozenset({"CSINode"})
"""Kinds that are known without some fields of the elements of a list, so that it is merged, not replaced."""
_CLAIM: Final = "PersistentVolumeClaim"
_PROTECTION: Final = frozenset({"kubernetes.io/pvc-protection", "resource.kubernetes.io/delete-protection"})
"""The finalizers that kube-controller-manager removes from claims once no pod uses them."""
_SET_BY_SERVER: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation"})
"""Fields of the metadata that an object must not have when it is created."""
_TOLERATED_BY_ALL: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_TOLERATION_SECONDS: Final = 300
"""What the admission plugin DefaultTolerationSeconds gives to every pod."""
_OF_JOBS: Final = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
"""Labels of the template of a Job that the API server sets; another Job must not have them."""


Written = Callable[[str, Json], tuple[str, Json]]


def as_it_is(kind: str, body: Json) -> tuple[str, Json]:
    """For servers of which nothing is known: they serve the versions of `API_VERSIONS`."""
    return kind.lower(), body


@frozen(kw_only=True)
class Kubectl:
    """How kubectl is told of a cluster.

    Attributes:
        flags: for it.
        written: kind, and an object or a patch of one → how kubectl names the kind, and the same in the version that
            the server serves.
    """

    flags: Sequence[str] = ()
    written: Written = as_it_is

    @property
    def command(self) -> str:
        """Its name and flags."""
        return shlex.join(["kubectl", *self.flags])


ANY_CLUSTER: Final = Kubectl()
"""Whichever is the current one; nothing is known of it."""


def commands(
    edited: Sequence[EditedObject], pod: Pod, workload: Workload | None, kubectl: Kubectl = ANY_CLUSTER
) -> list[str]:
    """The commands for one remedy.

    Args:
        edited: what it changes.
        pod: the pod in question.
        workload: what makes it; None if nothing does.
        kubectl: for which cluster.

    Returns:
        Nothing for nodes that are to be added: no command makes these.
    """
    found: list[str] = []
    # Nodes last: as soon as they take pods, the pod may get a place that it loses again to one of a higher priority.
    for one in sorted(edited, key=lambda one: one.kind == "Node"):
        if one.is_consequence:
            continue
        if one.kind == "Pod" and one.old is not None and one.new is not None:
            maker = workload if _is_changed_with(pod, one.old) else workload_behind(one.old)
            found += _of_pod(kubectl.command, one.old, pod_patch(one.old, one.new), maker)
        elif one.kind == "Node" and one.old is not None and one.new is not None:
            found += _of_node(kubectl.command, one.old, one.new)
        elif one.kind == "PodGroup" and is_of_workload(one.name):
            found.append(
                f"# create the workload {workload_and_group(one.name)[0]} again: its pod groups cannot be changed"
            )
        elif one.kind == _CLAIM and one.recreate and is_of(_owner(pod), one.old):
            found += _of_pod(kubectl.command, pod, _of_ephemeral_volume(pod, one), workload, claim=one.name)
        elif one.recreate and is_of_template(one, pod) and one.old.metadata.deletion_timestamp is None:
            found.append(_of_claim_template(kubectl.command, one, pod))
        elif one.kind == "Node" or (one.kind in ("Pod", "CSINode") and one.old is None):
            return []  # what comes with a new node
        else:
            found.append(_of_object(kubectl, one))
    return found


def _is_changed_with(pod: Pod, other: Pod) -> bool:
    """Whether *other* is the pod in question, or changed with it because both are of one Job or group."""
    is_same = (other.namespace, other.name) == (pod.namespace, pod.name) or is_of(controller_of(pod), other)
    return is_same or (pod.group_key is not None and other.group_key == pod.group_key)


def _where(one: EditedObject) -> str:
    return f" -n {shlex.quote(one.namespace)}" if one.namespace else ""


def _patch(patch: Json | Sequence[Json]) -> str:
    return shlex.quote(json.dumps(patch, separators=(",", ":")))


def _of_pod(kubectl: str, pod: Pod, patch: PodPatch, workload: Workload | None, *, claim: str = "") -> Iterator[str]:
    """Makes *patch* of *pod*, or of what makes it; the claim of an ephemeral volume, if one is named, goes with it."""
    name, where = shlex.quote(pod.name), f" -n {shlex.quote(pod.namespace)}"
    without_claim = f"{kubectl} delete persistentvolumeclaim {shlex.quote(claim)}{where} --ignore-not-found"
    if workload is not None and workload.kind in _TEMPLATES:
        text = _patch({"spec": {"template": _of_template(patch.whole, is_daemon=workload.kind == "DaemonSet")}})
        yield f"{kubectl} patch {workload.kind.lower()} {shlex.quote(workload.name)}{where} -p {text}"
        controller = controller_of(pod)
        if pod.group_key is not None and controller is not None and workload.kind == "Deployment":
            # Gangs do not start with a part of their pods, and a rollout makes no more before these are ready.
            yield f"{kubectl} scale replicaset {shlex.quote(controller.name)}{where} --replicas=0"
        if workload.kind in _KEEPS_PODS:
            yield f"{kubectl} delete pod {name}{where}" + (f" && {without_claim}" if claim else "")
    elif patch.is_in_place:
        if patch.resize:
            yield f"{kubectl} patch pod {name}{where} --subresource=resize -p {_patch({'spec': patch.resize})}"
        changed = {"metadata": patch.metadata, "spec": patch.mutable}
        if any(changed.values()):
            given = {key: value for key, value in changed.items() if value}
            yield f"{kubectl} patch pod {name}{where} -p {_patch(given)}"
    elif workload is not None and workload.kind == "Job":
        yield _of_job(kubectl, workload.name, where, _of_template(patch.whole))
    elif workload is not None and workload.kind == "CronJob":
        template = _of_template(patch.whole)
        text = _patch({"spec": {"jobTemplate": {"spec": {"template": template}}}})
        yield f"{kubectl} patch cronjob {shlex.quote(workload.name)}{where} -p {text}"
        job = controller_of(pod)
        if job is not None and job.kind == "Job":  # the one that is there keeps its template
            yield _of_job(kubectl, job.name, where, template)
    elif workload is not None:
        yield f"# pods of a {workload.kind} get this with the next ones, once its template has"
        yield f"# {json.dumps(_of_template(patch.whole))}"
    else:
        # No kubelet ends a pod of a node that does not exist.
        delete = f"{kubectl} delete pod {name}{where}{' --force --grace-period=0' if pod.node_name else ''}"
        between = f"{delete} && {without_claim}" if claim else delete if pod.node_name else ""
        # A kubectl older than the cluster merges no field that it does not know, unless it merges plain JSON.
        fields = patch.whole.get("spec", {}).keys()
        flags = " --type=merge" if fields and fields <= _NEW_FIELDS else ""
        yield _recreated(kubectl, f"pod {name}{where}", patch.whole, flags, between=between)


def _owner(pod: Pod) -> OwnerReference:
    return OwnerReference(kind="Pod", name=pod.name, uid=pod.uid, controller=True)


def _of_ephemeral_volume(pod: Pod, claim: EditedObject) -> PodPatch:
    """What changes a claim that is made again with its pod: another template of it in the pod."""
    template = {"spec": changed_template(claim)}
    volume = {"name": claim.name.removeprefix(f"{pod.name}-"), "ephemeral": {"volumeClaimTemplate": template}}
    return PodPatch(whole={"spec": {"volumes": [volume]}}, mutable={}, resize={})


def is_of_template(one: EditedObject, pod: Pod) -> bool:
    """Whether it is a claim that a StatefulSet has made from its template for *pod*."""
    owner = controller_of(pod)
    is_of_set = owner is not None and owner.kind == "StatefulSet" and one.kind == _CLAIM
    return is_of_set and one.namespace == pod.namespace and one.name.endswith(f"-{pod.name}")


def changed_template(one: EditedObject) -> Json:
    """A patch of the spec of a claim's template; empty if it makes the claim as it is to be."""
    changed = patch_of(one.old, one.new).get("spec", {})
    return {key: value for key, value in changed.items() if key != "volumeName"}


def _of_claim_template(kubectl: str, one: EditedObject, pod: Pod) -> str:
    """Makes a claim again from its StatefulSet's template, which only another StatefulSet can have otherwise.

    Its controller makes a claim that is gone again at once, from the template as it is.
    """
    owner = controller_of(pod)
    name, where = shlex.quote("" if owner is None else owner.name), _where(one)
    delete = f"{kubectl} delete persistentvolumeclaim {shlex.quote(one.name)}{where}"
    spec = changed_template(one)
    if not spec:
        return f"{delete} --wait=false"
    index, template = "/spec/volumeClaimTemplates/INDEX/spec", shlex.quote(one.name.removesuffix(f"-{pod.name}"))
    names = shlex.quote('jsonpath={range .spec.volumeClaimTemplates[*]}{.metadata.name}{"\\n"}{end}')
    patch = _patch(list(_operations(index, spec))).replace("INDEX", "'$((n-1))'")
    found = f"n=$({kubectl} get statefulset {name}{where} -o {names} | grep -nxF {template} | cut -d: -f1)"
    between = f"{kubectl} delete statefulset {name}{where} --cascade=orphan && {delete}"
    return f"{found} && {_recreated(kubectl, f'statefulset {name}{where}', patch, ' --type=json', between=between)}"


def _operations(path: str, patch: Json) -> Iterator[Json]:
    """A merge patch of what is at *path* as a JSON patch."""
    for key, value in patch.items():
        if isinstance(value, dict):
            yield from _operations(f"{path}/{key}", value)
        elif value is None:
            yield {"op": "remove", "path": f"{path}/{key}"}
        else:
            yield {"op": "add", "path": f"{path}/{key}", "value": value}


def _of_job(kubectl: str, name: str, where: str, template: Json) -> str:
    """Recreates a Job, whose template cannot be changed."""
    metadata: Json = {**template.get("metadata", {})}
    metadata["labels"] = {**metadata.get("labels", {}), **dict.fromkeys(_OF_JOBS)}
    job: Json = {"spec": {"selector": None, "template": {**template, "metadata": metadata}}}
    return _recreated(kubectl, f"job {shlex.quote(name)}{where}", job)


def _recreated(kubectl: str, what: str, patch: Json | str, flags: str = "", *, between: str = "") -> str:
    """Deletes an object and creates it again, with a patch; *between* are commands after which nothing keeps it."""
    quoted = patch if isinstance(patch, str) else _patch(patch)
    local = f"{kubectl} patch --local -f - -o json{flags} -p {quoted}"
    patched, replace = f"{kubectl} get {what} -o json | {local}", f"{kubectl} replace --force -f -"
    if between:
        return f"new=$({patched}) && {between} && printf '%s\\n' \"$new\" | {replace}"
    return f"{patched} | {replace}"


def _of_template(patch: Json, *, is_daemon: bool = False) -> Json:
    """*patch* of a pod for the template that it was made from: what admission or the controller sets is left out."""
    found = dict(patch)
    spec = dict(found.get("spec") or {})
    for name in ("priority", "preemptionPolicy"):
        spec.pop(name, None)
    if spec.get("tolerations"):
        spec["tolerations"] = [one for one in spec["tolerations"] if not _is_set_later(one, is_daemon=is_daemon)]
    if spec:
        found["spec"] = spec
    return found


def _is_set_later(toleration: Json, *, is_daemon: bool) -> bool:
    """Whether every pod gets it, or every pod of a DaemonSet."""
    key = str(toleration.get("key"))
    if is_daemon:
        return key.startswith("node.kubernetes.io/") and toleration.get("operator") == "Exists"
    return key in _TOLERATED_BY_ALL and toleration.get("tolerationSeconds") == _TOLERATION_SECONDS


def _of_node(kubectl: str, old: Node, new: Node) -> Iterator[str]:
    name = shlex.quote(new.name)
    taints = [one for one in old.spec.taints or () if one not in (new.spec.taints or ())]
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield f"{kubectl} uncordon {name}"
        taints = [one for one in taints if one.key != "node.kubernetes.io/unschedulable"]
    for taint in taints:
        value = f"={taint.value}" if taint.value else ""
        yield f"{kubectl} taint nodes {name} {shlex.quote(f'{taint.key}{value}:{taint.effect}-')}"
    for key, label in new.labels.items():
        if old.labels.get(key) != label:
            overwrite = " --overwrite" if key in old.labels else ""
            yield f"{kubectl} label node {name} {shlex.quote(f'{key}={label}')}{overwrite}"
    for key in old.labels:
        if key not in new.labels:
            yield f"{kubectl} label node {name} {shlex.quote(f'{key}-')}"


def _of_object(kubectl: Kubectl, one: EditedObject) -> str:
    call, name, where = kubectl.command, shlex.quote(one.name), _where(one)
    if one.new is None:
        kind, _ = kubectl.written(one.kind, {})
        is_ending = one.old is not None and one.old.metadata.deletion_timestamp is not None
        flags = " --force --grace-period=0" if is_ending else ""
        if is_ending and one.kind == "Pod" and one.old.metadata.finalizers:
            released = _patch({"metadata": {"finalizers": None}})
            release = f"{call} patch {kind} {name}{where} --type=merge -p {released}"
            return f"{call} delete {kind} {name}{where}{flags} --wait=false && {release}"
        if one.kind == _CLAIM:  # a controller makes it again at once, and kubectl would wait for that
            flags += " --wait=false"
        return f"{call} delete {kind} {name}{where}{flags}"
    kind, made = kubectl.written(one.kind, manifest(one))
    if one.old is None:
        return f"echo {_patch(made)} | {call} apply -f -"
    if one.recreate and one.old.metadata.deletion_timestamp is not None:
        wait = f"{call} wait --for=delete {kind} {name}{where} --timeout=5m"
        if set(one.old.metadata.finalizers or ()) - _PROTECTION:  # nobody may be left who removes them
            released = _patch({"metadata": {"finalizers": None}})
            wait = f"{call} patch {kind} {name}{where} --type=merge -p {released} && {wait}"
        return f"{wait} && echo {_patch(made)} | {call} apply -f -"
    _, patch = kubectl.written(one.kind, patch_of(one.old, one.new))
    if one.recreate and one.kind == "PodGroup":  # a finalizer keeps it as long as it has pods
        released = _patch({"metadata": {"finalizers": None}})
        between = f"{call} delete {kind} {name}{where} --wait=false && "
        between += f"{{ {call} patch {kind} {name}{where} --type=merge -p {released} || true; }}"
        return _recreated(call, f"{kind} {name}{where}", patch, " --type=merge", between=between)
    if one.recreate:
        return _recreated(call, f"{kind} {name}{where}", patch, " --type=merge")
    flags = "" if one.kind in _STRATEGIC else " --type=merge"
    return f"{call} patch {kind} {name}{where}{flags} -p {_patch(patch)}"


def manifest(one: EditedObject) -> Json:
    """The manifest of an object that is to be made."""
    fields: Json = to_builtins(one.new)
    filled = {key: value for key, value in fields.items() if value}
    if one.old is None:
        filled["metadata"] = {key: value for key, value in fields["metadata"].items() if key not in _SET_BY_SERVER}
    return {"apiVersion": API_VERSIONS.get(one.kind, "v1"), "kind": one.kind, **filled}


def workload_of(pod: Pod, replica_set: Any) -> Workload | None:
    """What makes *pod*: its controller, or the Deployment that is behind it.

    Args:
        pod: the pod.
        replica_set: its controller, if that is a ReplicaSet that is known.
    """
    controller = controller_of(pod)
    if controller is None:
        return None
    behind = (
        None
        if replica_set is None
        else next((one for one in replica_set.metadata.owner_references or () if one.controller), None)
    )
    found = behind or controller
    return Workload(kind=found.kind, name=found.name)
