"""Label selectors over postings, compared with the same selectors on one label set at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.snapshot.labels.label_postings import LabelPostings
from trio_sched.snapshot.labels.label_selection import EVERYTHING, NOTHING, LabelMatcher

KEYS = st.sampled_from("abc")
VALUES = st.sampled_from("xyz")
REQUIREMENTS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["In", "NotIn"]), st.frozensets(VALUES, min_size=1)),
    st.tuples(KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just(frozenset[str]())),
)
MATCHERS = st.one_of(st.just(NOTHING), st.lists(REQUIREMENTS).map(lambda given: LabelMatcher(tuple(given))))


@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=12), MATCHERS)
def test_the_things_are_those_that_a_selector_matches_one_by_one(
    things: list[dict[str, str]], matcher: LabelMatcher
) -> None:
    postings = LabelPostings()
    assert [postings.add(labels) for labels in things] == list(range(len(things)))
    among = np.ones(postings.count, dtype=np.bool_)
    postings.intersect(among, matcher)
    assert among.tolist() == [matcher.matches(labels) for labels in things]


def test_only_those_that_were_among_them_stay() -> None:
    postings = LabelPostings()
    for _ in range(3):
        postings.add({"a": "x"})
    among = np.array([True, False, True])
    postings.intersect(among, EVERYTHING)
    postings.intersect(among, LabelMatcher((("a", "In", frozenset("x")),)))
    assert among.tolist() == [True, False, True]


def test_postings_can_grow_after_they_were_read() -> None:
    postings, has_a = LabelPostings(), LabelMatcher((("a", "Exists", frozenset()),))
    postings.add({"a": "x"})
    among = np.ones(1, dtype=np.bool_)
    postings.intersect(among, has_a)
    postings.add({"a": "y"})
    among = np.ones(2, dtype=np.bool_)
    postings.intersect(among, has_a)
    assert among.all()
