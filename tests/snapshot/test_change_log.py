import numpy as np

from trio_sched.snapshot.change_log import KEPT_CHANGES, ChangeLog, as_index


def test_a_reader_sees_each_changed_row_once_and_only_what_came_after_it() -> None:
    log = ChangeLog()
    log.append(4)
    position = log.position
    assert log.since(position) == []
    for row in (7, 3, 7):
        log.append(row)
    assert log.since(position) == [7, 3]
    assert log.since(log.position) == []


def test_a_reader_that_is_too_far_behind_gets_none() -> None:
    log = ChangeLog()
    start = log.position
    for row in range(2 * KEPT_CHANGES + 1):
        log.append(row)
    assert log.since(start) is None
    assert log.position == 2 * KEPT_CHANGES + 1
    assert log.since(log.position - 2) == [2 * KEPT_CHANGES - 1, 2 * KEPT_CHANGES]


def test_a_single_row_is_a_slice_and_several_are_an_array() -> None:
    assert as_index([5]) == slice(5, 6)
    several = as_index([5, 2])
    assert isinstance(several, np.ndarray)
    assert several.tolist() == [5, 2]
