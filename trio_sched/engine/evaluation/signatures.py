"""Signatures of pods, until when they hold, and the caches of what was found out under them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from trio_sched.engine.evaluation.kind_dependencies import KindDependencies
from trio_sched.engine.evaluation.nominated_pods import NominatedRows
from trio_sched.engine.evaluation.signature_cache import SignatureCache
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_table import NodeTable

SIGNED_PER_ATTEMPT: Final = -1
"""The epoch of pods whose signature holds for one attempt."""


@define(eq=False)
class Signatures:
    """Signs pods with the profile of their scheduler."""

    _table: NodeTable
    _nominated_rows: NominatedRows
    _dependencies: KindDependencies
    _failures: PluginFailures
    epoch: int = field(default=0, init=False)
    """Grows when all signatures become invalid; older ones are made again."""
    caches: Mapping[str, SignatureCache] = field(factory=dict, init=False)
    """By schedulerName."""
    _profiles: Mapping[str, Profile] = field(factory=dict, init=False)

    def install(self, profiles: Mapping[str, Profile]) -> None:
        """Sign with *profiles* from now on, and begin with empty caches."""
        self._profiles = profiles
        self.caches = {
            name: SignatureCache(profile, self._table, self._dependencies, self._nominated_rows)
            for name, profile in profiles.items()
        }

    def sign(self, pod: Pod) -> tuple[Hashable, ...] | None:
        """The signature under which results about *pod* are cached; None if there is none."""
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        try:
            with self._dependencies.recording():
                return profile.signature(pod)
        except HookFailed as failed:  # then nothing is cached for this pod, which is only slower
            self._failures.add(failed, pod.key)
            return None

    def sign_queued(self, info: QueuedPodInfo) -> None:
        """Note the signature of this version of the pod, and its epoch.

        Pods with resource claims are signed again for every attempt, as the state of their claims is part of it.
        """
        if info.pod.spec.resource_claims:
            info.signature, info.signature_epoch = None, SIGNED_PER_ATTEMPT
        else:
            info.signature, info.signature_epoch = self.sign(info.pod), self.epoch

    def invalidate(self) -> None:
        """Something has changed that plugins read and that no signature shows."""
        self.epoch += 1
        for cache in self.caches.values():
            cache.clear()

    def forget_nominated(self) -> None:
        """Forget what was found out about nominated pods, of which some may be gone."""
        for cache in self.caches.values():
            cache.forget_nominated()

    def cached(self) -> dict[str, int]:
        """Profile → signatures whose results are cached."""
        return {name: len(cache) for name, cache in self.caches.items()}

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is found out in the block is a part of an attempt of a pod group."""
        caches = list(self.caches.values())
        for cache in caches:
            cache.is_trial = True
        try:
            yield
        finally:
            for cache in caches:
                cache.is_trial = False
