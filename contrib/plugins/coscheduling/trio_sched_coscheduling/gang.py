"""The gangs: which pods belong to them, and how far each has come."""

from __future__ import annotations

import math

from attrs import define, field

from trio_sched.plugin_api import Handle, Pod, PodSelector, select_pods


class BadLabel(ValueError):
    """A label says nothing that can be meant."""


@define(eq=False)
class Gang:
    """Pods of one namespace with the same value of the group label; times are those of ``handle.now()``."""

    namespace: str
    name: str
    selector: PodSelector
    """Those of its pods that are on a node, or assumed on one, and not being deleted."""
    created: float
    """Its place in the queue: when its first pod that was seen was created."""
    names: set[str] = field(factory=set)
    """The names of pods that had no node when they were seen last."""
    unplaced: dict[str, Pod] = field(factory=dict)
    """By UID: the pods without a node when the watch was last looked at, those that are only assumed included."""
    minimum: int = 1
    """How many pods must have a node before one is bound: the highest number that one of *unplaced* names."""
    assumed: set[str] = field(factory=set)
    """UIDs of pods with a reservation that the watch does not show on a node yet."""
    waiting: set[str] = field(factory=set)
    """UIDs of pods that wait on permit."""
    failed: set[str] = field(factory=set)
    """UIDs of pods that fitted on no node in this round."""
    round_began: float = 0.0
    """When the first of *waiting* began to wait."""
    failures: int = 0
    """Rounds that ended without the gang being complete, in a row."""
    backoff_until: float | None = None
    incomplete_since: float | None = None
    """Since when it has too few pods; None if it has enough."""
    told: str = ""
    """What the last events about too few pods said."""
    told_at: float = -math.inf
    seen_version: int = -1
    """The version of all pods when *unplaced* was made."""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def startable(self) -> int:
        """How many pods without a reservation may still fit somewhere in this round."""
        return len(self.unplaced.keys() - self.assumed - self.failed)


@define(eq=False)
class Gangs:
    """All gangs; the instances of all profiles share one."""

    group_label: str
    minimum_label: str
    by_key: dict[tuple[str, str], Gang] = field(factory=dict)
    profiles: set[str] = field(factory=set)
    """Those that have the plugin; pods of others, and of other schedulers, count once they have a node."""

    def name_of(self, pod: Pod) -> str:
        """The name of its gang; "" if it is in none, or in a PodGroup, which the scheduler itself looks after."""
        if pod.spec.scheduling_group is not None:
            return ""
        labels = pod.metadata.labels
        return labels.get(self.group_label, "") if labels else ""

    def minimum_of(self, pod: Pod) -> int:
        """What the pod says that its gang needs; 1 if it says nothing.

        Raises:
            BadLabel: it is no whole number from 1 on.
        """
        text = pod.labels.get(self.minimum_label)
        if text is None:
            return 1
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise BadLabel(f"label {self.minimum_label} must be a whole number from 1 on, not {text!r}")
        return int(text)

    def find(self, pod: Pod) -> Gang | None:
        """The gang of *pod*, if it is in one that is known."""
        name = self.name_of(pod)
        return self.by_key.get((pod.namespace, name)) if name else None

    def can_be_placed(self, pod: Pod) -> bool:
        """Whether this scheduler may try the pod now."""
        return (
            not pod.node_name
            and not pod.spec.scheduling_gates
            and pod.metadata.deletion_timestamp is None
            and pod.scheduler_name in self.profiles
        )

    def join(self, pod: Pod, created: float) -> Gang | None:
        """The gang of *pod*, which a pod that was *created* then begins if need be; None if it is in none."""
        name = self.name_of(pod)
        if not name:
            return None
        gang = self.by_key.get((pod.namespace, name))
        if gang is None:
            selector = select_pods({self.group_label: name}, namespaces=[pod.namespace], without_terminating=True)
            gang = self.by_key[pod.namespace, name] = Gang(pod.namespace, name, selector, created)
        known = gang.unplaced.get(pod.uid)
        if known is None or known.metadata.labels != pod.metadata.labels:
            gang.names.add(pod.name)
            gang.seen_version = -1
        return gang

    def look(self, gang: Gang, handle: Handle, newest: Pod | None = None) -> None:
        """Find out which pods of *gang* have no node; costs nothing while no pod has changed.

        *newest* is one of its pods, in a version that a watch may not have shown yet.
        """
        version = handle.version("Pod")
        if gang.seen_version == version:
            return
        gang.seen_version = version
        gang.unplaced = {}
        gang.minimum = 1
        for name in list(gang.names):
            is_newest = newest is not None and newest.name == name
            pod = newest if is_newest else handle.object("Pod", name, gang.namespace)
            if pod is None or not self.can_be_placed(pod) or self.name_of(pod) != gang.name:
                gang.names.discard(name)
                continue
            gang.unplaced[pod.uid] = pod
            try:
                gang.minimum = max(gang.minimum, self.minimum_of(pod))
            except BadLabel:
                del gang.unplaced[pod.uid]  # pre_enqueue keeps it back
        gang.assumed &= gang.unplaced.keys() | gang.waiting
        gang.failed &= gang.unplaced.keys()

    def forget_ended(self) -> None:
        """Forget gangs of which no pod waits for a node."""
        for key, gang in list(self.by_key.items()):
            if not gang.names and not gang.waiting and not gang.assumed:
                del self.by_key[key]
