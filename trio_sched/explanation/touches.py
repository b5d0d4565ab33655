"""What a change touches: the pod alone, other objects, other pods; what touches least is shown first."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from trio_sched.explanation.analysis import FailingClause
from trio_sched.explanation.commands import changed_template, is_of_template
from trio_sched.explanation.limit_ranges import KIND as LIMIT_RANGE
from trio_sched.explanation.other_pods.fewer_pods import SCALED
from trio_sched.explanation.owners import controller_of, is_of
from trio_sched.explanation.patches import pod_patch
from trio_sched.explanation.trial import EditedObject
from trio_sched.objects.pod import Pod

_CONDITION_TAINT: Final = "taint node.kubernetes.io/"
_CONTROL_PLANE_TAINT: Final = "taint node-role.kubernetes.io/control-plane"
_BOUND: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of claims that have their volume."""


class Touch(IntEnum):
    """What a change touches, the least first."""

    POD_IN_PLACE = 1
    """A field of the pod that can be changed while it is pending."""
    NODE = 2
    OBJECT = 3
    POD_RECREATED = 4
    """A field that only a new pod can have otherwise."""
    CONTROL_PLANE = 5
    """The pod runs beside the control plane, which few want."""
    WORKLOAD_RECREATED = 6
    """The template of a StatefulSet's claims, which only another StatefulSet can have otherwise."""
    OTHER_PODS = 7
    """Other pods, or another value of a label that a node has, which may be what other pods are there for."""
    NEW_NODE = 8
    FEWER_PODS = 9
    """Another workload gets fewer pods."""
    VOLUME = 10
    """The pod gets an empty volume; what is on the one that its claim has stays behind, or is lost."""
    NEW_ZONE = 11
    """A node where there is none like it yet."""
    BROKEN_NODE = 12
    """The pod tolerates what the node controller says of a node that is not in order, or a node is said to take more
    volumes than its driver says: it may never start there."""
    POD_GIVEN_UP = 13
    """The pod's own workload gets as many pods as run, which leaves this one out."""


def touched_by(
    edited: Sequence[EditedObject], clauses: Sequence[FailingClause], pod: Pod, *, is_correction: bool
) -> Touch:
    """The most that is touched by *edited*, which meets *clauses*; a claim for a misspelt one leaves nothing behind."""
    if not is_correction and any(_leaves_a_claim(one) for one in edited):
        return Touch.VOLUME
    of_objects = (_touch_of(one, pod) for one in edited if one.kind != "Pod" or not one.is_consequence)
    return max([*of_objects, *map(_touch_of_taint, clauses)])


def _leaves_a_claim(one: EditedObject) -> bool:
    """Whether a pod uses another claim."""
    if one.kind != "Pod" or one.old is None or one.new is None:
        return False
    before, after = (
        {
            volume.persistent_volume_claim.claim_name
            for volume in pod.spec.volumes or ()
            if volume.persistent_volume_claim
        }
        for pod in (one.old, one.new)
    )
    return not before <= after


def _touch_of_taint(one: FailingClause) -> Touch:
    """What it means to be on a node with the taint, if that is what the clause is about."""
    if one.clause.reason == "UntoleratedTaint" and one.title.startswith(_CONDITION_TAINT):
        return Touch.BROKEN_NODE
    if one.clause.reason == "UntoleratedTaint" and one.title.startswith(_CONTROL_PLANE_TAINT):
        return Touch.CONTROL_PLANE
    return Touch.POD_IN_PLACE


def is_of_changed_template(one: EditedObject, pod: Pod) -> bool:
    """Whether it is a claim that only another StatefulSet would make as it is to be."""
    if one.is_consequence or not one.recreate or not is_of_template(one, pod):
        return False
    return one.old is not None and one.old.metadata.deletion_timestamp is None and bool(changed_template(one))


def _touch_of(one: EditedObject, pod: Pod) -> Touch:
    if one.kind == "Node":
        if one.old is None:
            return Touch.NEW_NODE
        before, after = one.old.metadata.labels or {}, (one.new.metadata.labels or {}) if one.new is not None else {}
        is_other = any(after.get(key, value) != value for key, value in before.items())
        return Touch.OTHER_PODS if is_other else Touch.NODE
    if one.kind == LIMIT_RANGE:
        return Touch.OTHER_PODS
    if one.kind == "CSINode" and one.old is not None:
        return Touch.BROKEN_NODE
    if one.kind in SCALED:
        return Touch.FEWER_PODS
    if one.kind != "Pod":
        is_claim = one.kind == "PersistentVolumeClaim" and one.old is not None
        is_left = is_claim and _BOUND in (one.old.metadata.annotations or {}) and bool(one.old.spec.volume_name)
        is_other = is_left and (one.new is None or one.new.spec.volume_name != one.old.spec.volume_name)
        if is_other:
            return Touch.VOLUME
        return Touch.WORKLOAD_RECREATED if is_of_changed_template(one, pod) else Touch.OBJECT
    is_sibling = one.old is not None and (
        is_of(controller_of(pod), one.old) or (pod.group_key is not None and one.old.group_key == pod.group_key)
    )
    if (one.namespace, one.name) != (pod.namespace, pod.name) and not is_sibling:
        return Touch.OTHER_PODS
    if one.new is None:
        return Touch.OTHER_PODS
    return Touch.POD_IN_PLACE if pod_patch(one.old, one.new).is_in_place else Touch.POD_RECREATED
