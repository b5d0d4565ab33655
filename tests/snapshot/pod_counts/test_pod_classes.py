"""Classes of pods: how many pods are on which rows, compared with counting one pod after the other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.label_selection import EVERYTHING, LabelMatcher, selector_of_map
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.snapshot.pod_counts import pod_classes
from trio_sched.snapshot.pod_counts.pod_classes import PodClasses
from trio_sched.testing import pod

NAMESPACES = st.sampled_from(["default", "other"])
PODS = st.builds(
    lambda namespace, app: pod("p", namespace=namespace, labels={"app": app} if app else None),
    NAMESPACES,
    st.sampled_from(["web", "db", ""]),
)
NOT_DB = LabelMatcher((("app", "NotIn", frozenset({"db"})),))
PARTS = st.builds(
    NamespacedMatcher,
    st.none() | st.frozensets(NAMESPACES),
    st.sampled_from([EVERYTHING, selector_of_map({"app": "web"}), NOT_DB]),
)
SELECTORS = st.lists(PARTS, max_size=2).map(lambda parts: PodSelector(tuple(parts)))


def counted(classes: PodClasses, selector: PodSelector) -> Counter[int]:
    found: Counter[int] = Counter()
    for row, pods in zip(*(column.tolist() for column in classes.placements(selector)), strict=True):
        found[row] += pods
    return +found


@given(st.lists(st.tuples(st.integers(0, 3), PODS, st.booleans())), SELECTORS)
def test_placements_are_counted_while_pods_come_and_go(
    changes: list[tuple[int, Pod, bool]], selector: PodSelector
) -> None:
    classes, there = PodClasses(), list[tuple[int, Pod]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_classes, "_MAX_GONE", 1)
        for row, one, removes in changes:
            if removes and there:
                classes.remove(*there.pop(row % len(there)))
            else:
                classes.add(row, one)
                there.append((row, one))
    assert counted(classes, selector) == Counter(row for row, one in there if selector.matches_pod(one))


def test_nothing_is_kept_of_pods_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_classes, "_MAX_GONE", 10)
    classes, everything = PodClasses(), PodSelector(())
    classes.add(0, pod("stays"))
    for number in range(1000):
        one = pod("p", labels={"number": str(number)})
        for row in range(3):
            classes.add(row, one)
        for row in range(3):
            classes.remove(row, one)
        assert len(classes.placements(everything)[0]) <= 20


def test_pods_with_many_labels_that_are_gone_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_classes, "_MAX_GONE_LABELS", 1000)
    classes = PodClasses()
    classes.add(0, pod("stays", labels={"app": "web"}))
    for number in range(20):
        one = pod("p", labels={f"{number}-{label}": "x" for label in range(300)})
        classes.add(0, one)
        classes.remove(0, one)
        assert classes._labels.label_count <= 1301
    assert counted(classes, PodSelector((NamespacedMatcher(None, selector_of_map({"app": "web"})),))) == {0: 1}
