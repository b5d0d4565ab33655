"""Event handlers that take up the pods that this process is to decide on, or to bind, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection

from attrs import define, field

from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.objects.changes import Change
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched


@define(eq=False, kw_only=True)
class ShardedEventHandlers(EventHandlers):
    """Sees all pods, and queues its own."""

    owned: OwnedShards
    all_pods: Callable[[], Collection[Pod]]
    """Everything that the watch has shown."""
    new_term: Callable[[], None]
    """Called when a pod has come that repels others in a way that was not known."""
    _terms_changed: bool = field(default=False, init=False)
    _now: float = field(default=0.0, init=False)

    def pod_changed(self, change: Change[Pod], *, now: float) -> str:
        """Take in a change of a pod; see `EventHandlers.pod_changed`."""
        self._now, owned, pod = now, self.owned, change.subject
        owned.seen = max(owned.seen, revision_of(pod))
        if change.type == "DELETED":
            label = super().pod_changed(change, now=now)
            self._terms_changed |= owned.terms.remove(pod if change.old is None else change.old)
            return label
        if owned.terms.add(pod, owned.seen):
            self._terms_changed = True
            self.new_term()
        return super().pod_changed(change, now=now)

    def batch_changed(self, kind: Watched) -> None:
        """Objects of *kind* have changed; see `EventHandlers.batch_changed`."""
        super().batch_changed(kind)
        if self._terms_changed and kind == "Pod":
            self.take_up_own(now=self._now)

    def take_up_own(self, *, now: float) -> None:
        """Others decide on some pods from now on: forget those, take up the ones that are this process's now."""
        self._terms_changed = False
        self.profiles_changed(self.all_pods() if self.owned.ready else (), now=now)

    def _responsible_for_pod(self, pod: Pod) -> bool:
        return self._has_profile(pod) and self.owned.wants(pod)

    def _pod_updated(self, old: Pod, new: Pod, now: float) -> None:
        cache, queue = self.scheduler.cache, self.scheduler.queue
        if not old.node_name and not new.node_name:
            known = cache.unassigned.get(new.key)
            if not self._responsible_for_pod(new):
                if known is not None:
                    self._forget(known)
                return
            if known is None:
                cache.put_unassigned(new)
                if not cache.is_assumed(new.uid):
                    queue.add(new, now=now)
                return
        super()._pod_updated(old, new, now)


def revision_of(pod: Pod) -> int:
    """The revision of the API server at which *pod* got this version; 0 if its text is no number."""
    text = pod.metadata.resource_version
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
