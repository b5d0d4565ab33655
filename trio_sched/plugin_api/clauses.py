"""What plugins say of a pending pod: what it asks for, where that is not met, and what would meet it.

A plugin without any of this is explained by the statuses of its filter. One that implements the hook ``clauses`` names
each of its requirements by itself; a `Status` may carry a remedy of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.pod_group import (
    BasicSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from trio_sched.snapshot.arrays import BoolArray


@frozen(kw_only=True)
class Edit:
    """One object as it would be: changed, created or deleted.

    *apply* takes the object as it is (None: there is none) and returns it as it would be (None: deleted). It must not
    change what it is given; `replace_fields` makes a copy. What is tried and what is shown as a patch is its result.
    """

    kind: str
    """``Pod``, ``Node``, or the name under which plugins read such objects."""
    name: str
    namespace: str = ""
    apply: Callable[[Any], Any]
    is_consequence: bool = False
    """A controller does it once the rest is done, so no command is shown for it."""
    recreate: bool = False
    """The fields that differ cannot be changed: the object has to be deleted and created again."""


@frozen(kw_only=True)
class Change:
    """What somebody could do so that the pod runs; it is tried on a copy of the cluster before it is shown."""

    title: str
    """In a few words: ``tolerate dedicated=gpu``."""
    edits: tuple[Edit, ...]
    note: str = ""
    """What to know before doing it, as a part of a sentence."""
    corrects: bool = False
    """It puts right a name that was probably meant to be another; such changes come first."""
    series: str = ""
    """The series that it is in, fewer and fewer devices for instance: only the first that helps is shown."""

    def __and__(self, other: Change) -> Change:
        """Both of them."""
        notes = "; ".join(note for note in (self.note, other.note) if note)
        return Change(
            title=f"{self.title} and {other.title}",
            edits=(*self.edits, *other.edits),
            note=notes,
            corrects=self.corrects or other.corrects,
        )


def _no_changes(_otherwise: BoolArray) -> Iterable[Change]:
    return ()


@frozen(eq=False, kw_only=True)
class Clause:
    """One requirement of a pod, judged by itself."""

    reason: str
    """A stable code in CamelCase, ``InsufficientMemory`` for instance."""
    title: str
    """What is asked for, in a few words: ``memory 8.0Gi``."""
    fails: BoolArray | None = None
    """Shape (nodes,): where it is not met; None: nowhere, whatever the node."""
    cause: str | Callable[[BoolArray], str] = ""
    """The evidence, in a sentence that names what stands in the way. A function gets, shape (nodes,), the nodes where
    everything else is met."""
    details: Callable[[], Iterable[str]] = field(default=lambda: ())
    """More of the evidence, a line each."""
    is_given: bool = False
    """It comes with the pod and is seldom wrong, as the node of a pod of a DaemonSet, or of a volume: where another
    requirement keeps the pod from the nodes that this one allows, that is the cause."""
    is_awaited: bool = False
    """It keeps the pod from no node, but from being bound, until a controller has done something: that is the cause
    where nothing else is."""
    met_by: Callable[[Pod], bool] | None = None
    """Whether it would be met beside a pod that is pending itself, once that runs."""
    node_labels: Mapping[str, str] = field(factory=dict)
    """Labels with which a node would meet it, as those of the zone of a volume; one that has them may be added."""
    changes: Callable[[BoolArray], Iterable[Change]] = _no_changes
    """What would meet it on one of the given nodes (shape (nodes,)), the smallest change first."""


def some_names(names: Iterable[str], most: int = 3) -> str:
    """The first of *names*, in a text that says how many more there are."""
    listed = list(names)
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def edit_pod(pod: Pod, apply: Callable[[Pod], Pod]) -> Edit:
    """The pod in question with what *apply* changes of it."""
    return Edit(kind="Pod", name=pod.name, namespace=pod.namespace, apply=apply)


def smaller_gang(group: PodGroup, count: int, *, recreated: bool) -> Change:
    """The *group* with *count* as its ``minCount``; *recreated* where the API server lets nobody change that."""

    def smaller(one: PodGroup) -> PodGroup:
        return one.with_min_count(count)

    edit = Edit(kind="PodGroup", name=group.name, namespace=group.namespace, apply=smaller, recreate=recreated)
    lower = f"lower minCount of the gang {group.name} to {count}"
    return Change(title=f"recreate the gang {group.name} with minCount {count}" if recreated else lower, edits=(edit,))


def new_pod_group(namespace: str, name: str) -> Change:
    """A pod group of that name that asks for nothing: its pods are scheduled one by one."""
    policy = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
    metadata = ObjectMeta(name=name, namespace=namespace)
    made = PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=policy))
    return Change(
        title=f"make the pod group {name}, whose pods are scheduled one by one",
        edits=(Edit(kind="PodGroup", name=name, namespace=namespace, apply=lambda _none: made),),
        note="a gang has the policy gang, and its minCount",
    )


def edit_node(name: str, apply: Callable[[Any], Any]) -> Edit:
    """The node *name* with what *apply* changes of it."""
    return Edit(kind="Node", name=name, apply=apply)


def delete_pod(pod: Pod) -> Edit:
    """*pod* deleted."""
    return Edit(kind="Pod", name=pod.name, namespace=pod.namespace, apply=lambda _pod: None)
