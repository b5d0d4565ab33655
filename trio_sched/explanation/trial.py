"""A copy of the cluster's state, on which changes are made, the engine decides, and the changes are undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from attrs import define, field, frozen
from msgspec import Struct

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.engine.evaluation.preemption import Evictable
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook
from trio_sched.engine.scheduler import Scheduler
from trio_sched.explanation.analysis import awaited_clauses
from trio_sched.explanation.patches import pod_patch
from trio_sched.explanation.pod_groups import GroupOutcome, PodGroupOfPod, TooManyDecisions
from trio_sched.explanation.siblings import changed_together, for_siblings
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.runtime_class import KIND as RUNTIME_CLASS
from trio_sched.objects.runtime_class import RuntimeClass
from trio_sched.plugin_api.clauses import Change, Edit
from trio_sched.plugin_api.preemption import BudgetsByNamespace, Victims, budgets_of
from trio_sched.plugin_api.status import Code
from trio_sched.plugin_api.verdicts import NodeStatuses
from trio_sched.snapshot.node_columns import NodeColumns

_CANDIDATES: Final = 16
"""Nodes with victims that are compared."""


class CannotApply(Exception):
    """A change cannot be made here."""


@frozen(kw_only=True)
class EditedObject:
    """One object before and after a change."""

    kind: str
    name: str
    namespace: str
    old: Any
    """None: it is made."""
    new: Any
    """None: it is deleted."""
    is_consequence: bool = False
    """Nobody has to do it: a controller does, once the rest is done."""
    recreate: bool = False
    """It has to be deleted and created again."""


@frozen(kw_only=True)
class Outcome:
    """What the engine decides about the pod once a change is made."""

    node_name: str = ""
    """Empty: it would still be pending."""
    victims: tuple[Pod, ...] = ()
    """Pods that would be evicted for it."""
    violations: int = 0
    """How many of these a disruption budget protects."""
    evicted_groups: Mapping[str, int] = field(factory=dict)
    """Groups that are evicted as a whole, ``pod group default/train``, with how many of the victims they have."""
    evicted_pods: tuple[str, ...] = ()
    """The keys of the other victims."""
    message: str = ""
    """Why it would be pending."""
    group: GroupOutcome | None = None
    """What is decided about its group, if it has one and fits by itself."""


@define(eq=False)
class Trial:
    """Tries changes for one pod; nothing else may use the scheduler meanwhile.

    Attributes:
        scheduler: holds the cluster's state; after each trial it is what it was.
        pod: the pod in question, without a node.
        missing: how many more its controller makes once it runs.
    """

    scheduler: Scheduler
    pod: Pod
    missing: int = 0
    count: int = field(default=0, init=False)
    """How many changes have been tried."""
    group: PodGroupOfPod = field(init=False)
    """The group of the pod, if it has one: its pods are changed as the pod is, and decided together."""
    awaits_something: bool = field(default=False, init=False)
    """Whether the pod fits as things are, and waits for something before it is bound: that has to be there as well."""
    _assumed: dict[tuple[str, str, str], Any] = field(factory=dict, init=False)
    """Objects that no cache has, by kind, namespace and name; no plugin reads them."""
    _uids: dict[tuple[str, str], str] | None = field(default=None, init=False)
    """(namespace, name) → UID of the pods on nodes."""

    def __attrs_post_init__(self) -> None:
        self.group = PodGroupOfPod(self.scheduler, self.pod)

    def decide(self, change: Change, *, preempt: bool = False) -> Outcome:
        """What is decided about the pod once *change* is made.

        Args:
            change: is undone afterwards.
            preempt: whether other pods may be evicted for it, as its priority allows.

        Raises:
            CannotApply: the change cannot be made.
            TooManyDecisions: the pod's group is too large for one more trial.
        """
        with self.made(change) as edited:
            return self.decide_made(edited, preempt=preempt)

    def decide_made(self, edited: Sequence[EditedObject], *, preempt: bool = False) -> Outcome:
        """What is decided about the pod while a change is made; *edited* is what `made` gave."""
        others = {one.new.uid: one.new for one in edited if one.kind == "Pod" and one.new is not None}
        return self._decide(self.subject(edited), others, preempt=preempt)

    def would_help(self, change: Change, *, preempt: bool = False) -> bool:
        """Whether the pod would run once *change* is made."""
        try:
            return bool(self.decide(change, preempt=preempt).node_name)
        except (CannotApply, TooManyDecisions):
            return False

    def victims(self, evictable: Evictable, *, most_nodes: int) -> Mapping[str, Victims]:
        """The pods without which the pod fits, by node; empty if it fits, or if removing pods does not help.

        Args:
            evictable: gives the pods of a node that may be removed.
            most_nodes: so many nodes are looked at, those with the fewest pods first.
        """
        if self.pod.scheduler_name not in self.scheduler.profiles:
            return {}
        decision = self.scheduler.try_pod(self.pod)
        if isinstance(decision, ScheduleResult) or decision.diagnosis is None or decision.state is None:
            return {}
        table = self.scheduler.cache.table
        names = _resolvable(decision.diagnosis.statuses)
        names = sorted(names, key=lambda name: len(table.pods[table.row_of[name]]))[:most_nodes]
        found = self.scheduler.dry_run_preemption(
            self.pod, decision.state, names, most_nodes, self.budgets(), evictable=evictable
        )
        return found.candidates

    def now(self, *, preempt: bool = False) -> Outcome:
        """What is decided about the pod as things stand."""
        return self._decide(self.pod, {}, preempt=preempt)

    def subject(self, edited: Sequence[EditedObject]) -> Pod:
        """The pod in question, as a change leaves it."""
        subject = self.pod
        for one in edited:
            if one.kind == "Pod" and (one.namespace, one.name) == (self.pod.namespace, self.pod.name):
                subject = one.new
        return subject

    @contextmanager
    def made(self, change: Change) -> Generator[list[EditedObject], None, None]:
        """Make *change* for as long as the block runs.

        Raises:
            CannotApply: the change cannot be made.
        """
        self.count += 1
        edited: dict[tuple[str, str, str, bool], EditedObject] = {}
        undo: list[Callable[[], None]] = []
        try:
            siblings = changed_together(self.scheduler, self.pod, self.group)
            by_hand_first = sorted(change.edits, key=lambda edit: edit.is_consequence)
            for edit in for_siblings(self.pod, by_hand_first, siblings, self._is_in_place):
                of_object = edit.kind, edit.namespace, edit.name
                # What a controller does after something was done by hand is another step.
                before = edited.get((*of_object, edit.is_consequence))
                last = before or edited.get((*of_object, not edit.is_consequence))
                current = self.current(edit) if last is None else last.new
                edited[*of_object, edit.is_consequence] = EditedObject(
                    kind=edit.kind,
                    name=edit.name,
                    namespace=edit.namespace,
                    old=current if before is None else before.old,
                    new=_applied(edit, current),
                    is_consequence=edit.is_consequence,
                    recreate=edit.recreate or (before is not None and before.recreate),
                )
            for one in edited.values():
                undo.append(self._put(one))
            self._check_selector(self.subject(list(edited.values())))
            yield list(edited.values())
        finally:
            for step in reversed(undo):
                step()

    def runtime_class(self) -> RuntimeClass | None:
        """That of the pod, if it is known."""
        name, known = self.pod.spec.runtime_class_name, self.scheduler.object_cache
        found: RuntimeClass | None = known.get(RUNTIME_CLASS, name) if name and RUNTIME_CLASS in known.kinds else None
        return found

    def _check_selector(self, pod: Pod) -> None:
        """The API server gives new pods what their runtime class selects, and refuses those that select otherwise."""
        found = self.runtime_class() if pod is not self.pod else None
        own = pod.spec.node_selector or {}
        for key, value in (found.selector if found is not None else {}).items():
            if own.get(key) != value:
                raise CannotApply(f"its runtime class {pod.spec.runtime_class_name} asks for {key}={value}")

    def _is_in_place(self, edit: Edit) -> bool:
        return pod_patch(self.pod, _applied(edit, self.pod)).is_in_place

    def assume(self, kind: str, one: Any) -> None:
        """Take *one* for an object as it is that nobody has read, the number of pods of a workload for instance."""
        self._assumed[kind, one.metadata.namespace, one.metadata.name] = one

    def current(self, edit: Edit) -> Any:
        """The object of *edit* as it is; None if there is none."""
        assumed = self._assumed.get((edit.kind, edit.namespace, edit.name))
        if assumed is not None:
            return assumed
        if edit.kind == "Pod":
            if (edit.namespace, edit.name) == (self.pod.namespace, self.pod.name):
                return self.pod
            cached = self.scheduler.cache.get(self._uid(edit.namespace, edit.name))
            if cached is not None:
                return cached.pod_on_node
            return self.scheduler.cache.unassigned.get(f"{edit.namespace}/{edit.name}")
        if edit.kind == "Node":
            table = self.scheduler.cache.table
            row = table.row_of.get(edit.name)
            return None if row is None else table.nodes[row]
        return self.scheduler.object_cache.get(edit.kind, edit.name, edit.namespace)

    def _uid(self, namespace: str, name: str) -> str:
        if self._uids is None:
            self._uids = {(one.pod.namespace, one.pod.name): one.pod.uid for one in self.scheduler.cache}
        return self._uids.get((namespace, name), "")

    def _put(self, one: EditedObject) -> Callable[[], None]:
        """Put the object as it would be into the caches; returns what undoes that."""
        if (one.kind, one.namespace, one.name) in self._assumed:
            return lambda: None
        if one.kind == "Node":
            self._put_node(one.name, one.new)
            return lambda: self._put_node(one.name, one.old)
        if one.kind == "Pod":
            leave = self._put_in_group(one.old, one.new)
            if (one.namespace, one.name) == (self.pod.namespace, self.pod.name):
                return leave
            self._put_pod(one.old, one.new)

            def undo() -> None:
                self._put_pod(one.new, one.old)
                leave()

            return undo
        self._put_object(one, one.new)
        return lambda: self._put_object(one, one.old)

    def _put_node(self, name: str, node: Node | None) -> None:
        cache = self.scheduler.cache
        if node is not None:
            cache.add_node(node)
        elif name in cache.table.row_of:
            cache.remove_node(name)

    def _put_in_group(self, old: Pod | None, new: Pod | None) -> Callable[[], Any]:
        """Let a pod be a member of another group, if it names one; returns what undoes that."""
        if old is None or new is None or old.group_key == new.group_key:
            return lambda: None
        self.scheduler.cache.groups.remove(old)
        self.scheduler.cache.groups.add(new)
        return partial(self._put_in_group, new, old)

    def _put_pod(self, old: Pod | None, new: Pod | None) -> None:
        cache = self.scheduler.cache
        if old is not None and old.node_name:
            cached = cache.get(old.uid)
            if cached is not None and cached.assumed:
                cache.forget(old.uid)
            elif cached is not None:
                cache.remove(old.uid)
        if new is not None and new.node_name:
            cache.add(new)
        elif new is not None and old is not None and old.node_name:
            cache.put_unassigned(new)
        elif new is not None and cache.unassigned.get(new.key) is not None:
            cache.unassigned.put(new)

    def _put_object(self, one: EditedObject, new: Any) -> None:
        cache = self.scheduler.object_cache
        cache.add_kind(one.kind)
        if new is None:
            cache.remove(one.kind, one.name, one.namespace)
        else:
            cache.put(one.kind, one.name, one.namespace, new)
        cache.count_change(one.kind)

    def _decide(self, pod: Pod, others: Mapping[str, Pod], *, preempt: bool) -> Outcome:
        scheduler = self.scheduler
        profile = scheduler.profiles.get(pod.scheduler_name)
        if profile is None:
            return Outcome(message=f"no scheduler is called {pod.scheduler_name}")
        try:
            for hook in profile.pre_enqueue:
                status = call_status_hook(hook, pod)
                if status is not None:
                    return Outcome(message=status.message)
        except HookFailed as failed:
            return Outcome(message=str(failed))
        decision = scheduler.try_pod(pod)
        group = self.group if pod.group_key == self.pod.group_key else PodGroupOfPod(scheduler, pod)
        is_in_group = group.is_scheduled
        if isinstance(decision, ScheduleResult):
            if is_in_group:
                return self._decide_group(group, pod, others, preempt=preempt)
            if self.awaits_something:
                nodes = NodeColumns(scheduler.cache.table)
                awaited = awaited_clauses(profile, pod, nodes, decision.state)
                if awaited:
                    return Outcome(message=f"waits for the {awaited[0].title}")
            return Outcome(node_name=decision.node_name)
        diagnosis, state = decision.diagnosis, decision.state
        if preempt and is_in_group:  # that room can be made for one of its pods says nothing of the group
            preempt = False
            if scheduler.preempts_for_groups:
                outcome = self._decide_group(group, pod, others, preempt=True)
                if outcome.victims:
                    return outcome
        if not preempt or diagnosis is None or state is None or pod.spec.preemption_policy == "Never":
            return Outcome(message=decision.message)
        names = _resolvable(diagnosis.statuses)
        found = scheduler.dry_run_preemption(pod, state, names, _CANDIDATES, self.budgets())
        if not found.candidates:
            return Outcome(message=decision.message)
        name, victims = min(found.candidates.items(), key=lambda one: (one[1].cost, one[0]))  # as DefaultPreemption
        groups, pods = self._grouped(victims.pods)
        return Outcome(
            node_name=name,
            victims=victims.pods,
            violations=victims.pdb_violations,
            evicted_groups=groups,
            evicted_pods=pods,
        )

    def _grouped(self, victims: Iterable[Pod]) -> tuple[Mapping[str, int], tuple[str, ...]]:
        """How many of *victims* each group has that is evicted as a whole, and the keys of the others."""
        rules = self.scheduler.disruption_rules
        groups, pods = Counter[str](), []
        for pod in victims:
            group = None if rules is None else rules.disrupted_together(pod)
            if group is None:
                pods.append(pod.key)
            else:
                kind = "composite pod group" if isinstance(group, CompositePodGroup) else "pod group"
                groups[f"{kind} {group.namespace}/{group.name}"] += 1
        return groups, tuple(pods)

    def _decide_group(self, group: PodGroupOfPod, pod: Pod, others: Mapping[str, Pod], *, preempt: bool) -> Outcome:
        decided = group.decide({**others, pod.uid: pod}, preempt=preempt)
        status = None if decided.failing is None else decided.failing.result.status
        message = "other pods of its group come first" if status is None else status.message
        groups, pods = self._grouped(decided.victims)
        return Outcome(
            node_name=decided.node_of(pod),
            victims=decided.victims,
            violations=decided.violations,
            evicted_groups=groups,
            evicted_pods=pods,
            message=message,
            group=decided,
        )

    def budgets(self) -> BudgetsByNamespace:
        """The disruption budgets, as far as they are known."""
        cache = self.scheduler.object_cache
        return budgets_of(cache.objects("PodDisruptionBudget")) if "PodDisruptionBudget" in cache.kinds else {}


def _applied(edit: Edit, current: Any) -> Any:
    try:
        new = edit.apply(current)
    except BaseException as error:  # an edit of a plugin, which can raise anything
        raise_interrupt(error)
        raise CannotApply(f"{edit.kind} {edit.name}: {error!r}") from error
    if new is not None and not isinstance(new, Struct):
        raise CannotApply(f"{edit.kind} {edit.name}: the edit gives {type(new).__name__}, which is no object")
    return new


def _resolvable(statuses: NodeStatuses) -> list[str]:
    """The nodes that removing pods can help."""
    return [
        statuses.names[position]
        for status, positions in statuses.groups
        if status.code == Code.UNSCHEDULABLE
        for position in positions
    ]
