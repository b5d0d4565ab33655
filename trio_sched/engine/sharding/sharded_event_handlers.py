"""Event handlers that take up the pods that this process is to decide on, or to bind, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from attrs import define, field

from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.engine.queue.cluster_changes import ASSIGNED_POD_DELETE
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.pod_scope import pinned_node
from trio_sched.engine.sharding.reserved_places import has_room
from trio_sched.objects.changes import Change
from trio_sched.objects.metadata import NamespacedObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched


@define(eq=False, kw_only=True)
class ShardedEventHandlers(EventHandlers):
    """Sees all pods, and queues its own.

    A pod of its own that the owner of another node keeps a place for counts as if it were on that node, and is not
    queued: it is bound there, or the owner takes the nomination back. So does a pod that this process keeps a place for
    until another one binds it. One that asks for a place, or that others are evicted for, is nominated, and not queued.
    """

    owned: OwnedShards
    all_pods: Callable[[], Collection[Pod]]
    """Everything that the watch has shown."""
    new_term: Callable[[], None]
    """Called when a pod has come that repels others in a way that was not known."""
    place_lost: Callable[[Pod, str], None]
    """Called with a pod, and the node, whose owner keeps no place for it any more."""
    victim_gone: Callable[[], None]
    """Called when a pod is gone that others may have been waiting for."""
    node_moved: Callable[[], None]
    """Called when a node has got another shard."""
    asked: Callable[[Pod], None]
    """Called with a pod that another process asks to keep a place for on a node of this one."""
    elsewhere: dict[str, tuple[str, str]] = field(factory=dict, init=False)
    """By UID: pods that are decided on in one process and have a place on a node of another, if this is one of both →
    namespace and name, and the node."""
    _nominated: dict[str, Pod] = field(factory=dict, init=False)
    """By UID: pods of groups of other processes that are nominated to nodes of this one."""
    _terms_changed: bool = field(default=False, init=False)
    _now: float = field(default=0.0, init=False)

    def pod_changed(self, change: Change[Pod], *, now: float) -> str:
        """Take in a change of a pod; see `EventHandlers.pod_changed`."""
        self._now, owned, pod = now, self.owned, change.subject
        owned.seen = max(owned.seen, revision_of(pod))
        if change.type == "DELETED":
            self.elsewhere.pop(pod.uid, None)
            self._nominated.pop(pod.uid, None)
            label = super().pod_changed(change, now=now)
            self._terms_changed |= owned.terms.remove(pod if change.old is None else change.old)
            self.victim_gone()
            return label
        if owned.terms.add(pod, owned.seen):
            self._terms_changed = True
            self.new_term()
        label = super().pod_changed(change, now=now)
        self._look_if_nominated(pod, now)
        self._look_if_asked(pod)
        return label

    def _look_if_asked(self, pod: Pod) -> None:
        owned = self.owned
        is_asked = owned.is_asked_for_group(pod) or owned.is_asked_to_preempt_for_group(pod)
        if is_asked and not pod.node_name and self._has_profile(pod):
            self.asked(pod)

    def _look_if_nominated(self, pod: Pod, now: float) -> None:
        nominator, known = self.scheduler.queue.nominator, self._nominated.get(pod.uid)
        if self._is_nominated(pod):
            nominator.add_of_other_process(pod, pod.status.nominated_node_name)
            self._nominated[pod.uid] = pod
        elif known is not None:
            del self._nominated[pod.uid]
            node_name = nominator.delete(pod.uid)
            if node_name and self.scheduler.cache.get(pod.uid) is None:
                self.scheduler.queue.nomination_ended(known, node_name, now=now)

    def _is_nominated(self, pod: Pod) -> bool:
        if pod.node_name or not self.owned.is_nominated_for_group(pod) or not self._has_profile(pod):
            return False
        return self.scheduler.cache.get(pod.uid) is None  # else it counts on its node

    def node_changed(self, change: Change[Node], *, now: float) -> list[str]:
        """Take in a change of a node; see `EventHandlers.node_changed`."""
        labelled, node = self.owned.labelled, change.subject
        if labelled is not None:
            if change.type == "DELETED":
                labelled.node_deleted(node.name, revision_of(node))
            elif labelled.node_changed(node, revision_of(node)):
                self.node_moved()
        return super().node_changed(change, now=now)

    def nodes_listed_again(self, changed: Iterable[Node]) -> None:
        """Nodes have *changed*, and what they were in between was missed; see `EventHandlers.nodes_listed_again`."""
        if self.owned.labelled is not None:
            self.owned.labelled.changes_were_missed([node.name for node in changed])
            self.node_moved()

    def take_up_on(self, nodes: Collection[str], *, now: float) -> None:
        """This process decides for *nodes* now: take up the pods that ask for places there, or fit nowhere else."""

        def concerns(pod: Pod) -> bool:
            return pod.status.nominated_node_name in nodes or pinned_node(pod) in nodes

        self._take_up([pod for pod in self.all_pods() if not pod.node_name and concerns(pod)], now)

    def batch_changed(self, kind: Watched) -> None:
        """Objects of *kind* have changed; see `EventHandlers.batch_changed`."""
        super().batch_changed(kind)
        if self._terms_changed and kind == "Pod":
            self.take_up_own(now=self._now)

    def take_up_own(self, *, now: float) -> None:
        """Others decide on some pods from now on: forget those, take up the ones that are this process's now."""
        self._terms_changed = False
        self._take_up(self.all_pods() if self.owned.ready else (), now)

    def _take_up(self, pods: Collection[Pod], now: float) -> None:
        for pod in [one for one in self._nominated.values() if not self._is_nominated(one)]:
            self._look_if_nominated(pod, now)  # before it is queued, if it is this process's own now
        self.profiles_changed(pods, now=now)
        for pod in pods:
            if self.owned.has_groups and self._is_nominated(pod):
                self._look_if_nominated(pod, now)
            self._look_if_asked(pod)

    def profiles_changed(self, pods: Iterable[Pod], *, now: float) -> None:
        """See `EventHandlers.profiles_changed`."""
        unassigned = self.scheduler.cache.unassigned
        for key, _node in list(self.elsewhere.values()):
            known = unassigned.get(key)
            if known is not None and not self._has_place_elsewhere(known):
                self._leave_place(known)
                unassigned.drop(known)  # it is taken up again below if it is still this process's
        super().profiles_changed(pods, now=now)
        for pod in unassigned.pods():
            if pod.status.nominated_node_name and self._has_place_elsewhere(pod):
                self.put_in_place(pod)

    def _responsible_for_pod(self, pod: Pod) -> bool:
        return self._has_profile(pod) and self.owned.wants(pod)

    def _pod_added(self, pod: Pod, now: float) -> None:
        if not pod.node_name and self._has_place_elsewhere(pod):
            self.scheduler.cache.put_unassigned(pod)
            self.put_in_place(pod)
        else:
            super()._pod_added(pod, now)

    def _pod_updated(self, old: Pod, new: Pod, now: float) -> None:
        cache, queue = self.scheduler.cache, self.scheduler.queue
        if not old.node_name and not new.node_name:
            known = cache.unassigned.get(new.key)
            if self._has_place_elsewhere(new):
                cache.put_unassigned(new)
                self.put_in_place(new)
                return
            if new.uid in self.elsewhere:
                self._lose_place(new, now)
                known = None
            elif known is not None and has_room(known) and not has_room(new) and self.owned.is_proposed(new):
                self._forget(known)  # it has got what it waited for, or another place
                known = None
            if not self._responsible_for_pod(new):
                if known is not None:
                    self._forget(known)
                return
            if known is None:
                cache.put_unassigned(new)
                if not cache.is_assumed(new.uid):
                    queue.add(new, now=now)
                return
        elif new.node_name:
            self.elsewhere.pop(new.uid, None)
        super()._pod_updated(old, new, now)

    # --- places on nodes of others ----------------------------------------------------------------------------------

    def put_in_place(self, pod: Pod) -> bool:
        """The owner of another node keeps a place for *pod*: it counts there; False if an attempt of it is under way.

        Whoever has made that attempt calls `keep_place` once it is over.
        """
        cache, node_name = self.scheduler.cache, pod.status.nominated_node_name
        known = self.elsewhere.get(pod.uid)
        if known is not None and known[1] == node_name:
            return True
        if known is not None:
            self._leave_place(pod)
        elif cache.get(pod.uid) is not None:
            return False
        self.scheduler.queue.delete(pod)
        cache.assume(pod, node_name)
        self.elsewhere[pod.uid] = pod.key, node_name
        return True

    def keep_place(self, uid: str, key: str) -> bool:
        """The attempt of a pod is over that is assumed on the node of another; whether it has its place there now."""
        cache = self.scheduler.cache
        known, cached = cache.unassigned.get(key), cache.get(uid)
        if known is None or known.uid != uid or cached is None or not self._has_place_elsewhere(known):
            return False
        if cached.node_name != known.status.nominated_node_name:
            return False
        self.elsewhere[uid] = key, cached.node_name
        return True

    def end_place(self, uid: str, key: str, *, now: float) -> None:
        """What this process did about a place of a pod of others is over: count it there, if it keeps that, or not."""
        cache = self.scheduler.cache
        cached = cache.get(uid)
        if cached is not None and cached.assumed and not self.keep_place(uid, key):
            self.elsewhere.pop(uid, None)
            cache.forget(uid)
            self.scheduler.queue.move_all(ASSIGNED_POD_DELETE, cached.pod_on_node, None, now=now)

    def is_in_place(self, uid: str, node_name: str) -> bool:
        """Whether the pod with this UID counts as if it were on a node."""
        return uid in self.elsewhere and self.elsewhere[uid][1] == node_name

    def _update_pod_in_scheduling_queue(self, old: Pod, new: Pod, now: float) -> None:
        is_assumed, left = self.scheduler.cache.is_assumed(new.uid), old.nominated_node_name
        super()._update_pod_in_scheduling_queue(old, new, now)
        if is_assumed and left and left != new.nominated_node_name:  # room may have been made there that others can use
            self.scheduler.queue.nomination_ended(old, left, now=now)

    def _has_place_elsewhere(self, pod: Pod) -> bool:
        owned = self.owned
        if not pod.status.nominated_node_name or not self._has_profile(pod):
            return False
        if owned.has_place_elsewhere(pod) or owned.keeps_for_group(pod):
            return True
        # The next lane asks for the place that was kept for the last one.
        return self.is_in_place(pod.uid, pod.status.nominated_node_name) and owned.is_asked_for_group(pod)

    def _leave_place(self, pod: Pod) -> None:
        del self.elsewhere[pod.uid]
        if self.scheduler.cache.is_assumed(pod.uid):
            self.scheduler.cache.forget(pod.uid)

    def _lose_place(self, pod: Pod, now: float) -> None:
        """The nomination of *pod* was taken back: others can have the room there, and it has to find another."""
        cache, (_key, node_name) = self.scheduler.cache, self.elsewhere[pod.uid]
        cached = cache.get(pod.uid)
        self._leave_place(pod)
        cache.unassigned.drop(pod)
        if cached is not None:
            self.scheduler.queue.move_all(ASSIGNED_POD_DELETE, cached.pod_on_node, None, now=now)
        if not self.owned.owns_node(node_name) and not has_room(pod):
            self.place_lost(pod, node_name)


def revision_of(one: NamespacedObject | Node) -> int:
    """The revision of the API server at which an object got this version; 0 if its text is no number."""
    text = one.metadata.resource_version
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
