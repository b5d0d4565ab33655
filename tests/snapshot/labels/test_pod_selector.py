"""Selectors of pods, on one pod alone; on all pods of a cluster see test_pod_index.py."""

import msgspec

from trio_sched.snapshot.labels.label_selection import selector_of_map
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.testing import pod


def test_whether_it_is_being_deleted_does_not_matter_for_one_pod_alone() -> None:
    web = NamespacedMatcher(frozenset({"default"}), selector_of_map({"app": "web"}))
    staying = PodSelector((web,), without_terminating=True)
    one = pod("p", labels={"app": "web"})
    terminating = msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert staying.matches_pod(msgspec.structs.replace(one, metadata=terminating))
    assert not staying.matches_pod(pod("p", namespace="other", labels={"app": "web"}))
