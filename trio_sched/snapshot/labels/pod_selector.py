"""Which pods to count: by namespace, by labels, and by whether they are being deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector
from trio_sched.snapshot.labels.label_selection import EVERYTHING, LabelMatcher, compile_selector, selector_of_map


@frozen(cache_hash=True)
class NamespacedMatcher:
    """Pods with certain labels in certain namespaces; None means every namespace."""

    namespaces: frozenset[str] | None
    labels: LabelMatcher

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it matches a pod in *namespace* with *labels*."""
        return (self.namespaces is None or namespace in self.namespaces) and self.labels.matches(labels)


@frozen(cache_hash=True)
class PodSelector:
    """Which pods to count: those that *every* one of *parts* matches."""

    parts: tuple[NamespacedMatcher, ...]
    without_terminating: bool = False
    """Leave out pods that are being deleted."""
    namespaces: frozenset[str] | None = field(init=False, eq=False, repr=False)
    """The namespaces they can be in; None means every one."""

    def __attrs_post_init__(self) -> None:
        limits = [part.namespaces for part in self.parts if part.namespaces is not None]
        object.__setattr__(self, "namespaces", frozenset.intersection(*limits) if limits else None)

    @property
    def texts(self) -> int:
        """How many keys, values and names it has: its size in a `SizedCache`."""
        return sum(1 + part.labels.texts + len(part.namespaces or ()) for part in self.parts)

    def matches(self, namespace: str, labels: Mapping[str, str], terminating: bool = False) -> bool:
        """Whether a pod in *namespace* with *labels* is counted."""
        if terminating and self.without_terminating:
            return False
        for part in self.parts:  # noqa: SIM110 - all() takes twice as long
            if not part.matches(namespace, labels):
                return False
        return True

    def matches_pod(self, pod: Pod) -> bool:
        """Whether *pod* is counted, whether or not it is being deleted."""
        return self.matches(pod.namespace, pod.labels)


def select_pods(
    labels: LabelSelector | Mapping[str, str] | None = None,
    *,
    namespaces: Iterable[str] | None = None,
    without_terminating: bool = False,
) -> PodSelector:
    """A selector of pods, for the counts and sums of columns; equal arguments give equal selectors.

    Args:
        labels: what the labels must match: a selector, or labels that must be there; None: anything.
        namespaces: in which they are; None: in any.
        without_terminating: leave out pods that are being deleted.

    Raises:
        SelectorError: *labels* cannot be evaluated.
        TypeError: *namespaces* is a text.
    """
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces must be a tuple or set of names: ({namespaces!r},)")
    matcher = EVERYTHING if labels is None else selector_of_map(labels) if isinstance(labels, Mapping) else None
    matcher = compile_selector(labels) if matcher is None and isinstance(labels, LabelSelector) else matcher
    if matcher is None:
        raise TypeError(f"labels must be a LabelSelector or a dict, not {type(labels).__name__}")
    inside = None if namespaces is None else frozenset(namespaces)
    return PodSelector((NamespacedMatcher(inside, matcher),), without_terminating)
