import numpy as np
import pytest

from trio_sched.snapshot.arrays import longer, next_capacity, read_only


def test_capacity_doubles_and_does_not_begin_too_small() -> None:
    assert [next_capacity(capacity) for capacity in (0, 3, 64, 128)] == [64, 64, 128, 256]


def test_a_longer_column_keeps_its_type_and_is_filled_up_with_zeros() -> None:
    column = np.array([3, 1], dtype=np.int32)
    grown = longer(column, 4)
    assert (grown.tolist(), grown.dtype) == ([3, 1, 0, 0], column.dtype)
    grown[0] = 9
    assert column.tolist() == [3, 1]


def test_a_read_only_view_shows_what_is_written_to_its_array() -> None:
    column = np.zeros(2, dtype=np.int64)
    view = read_only(column[:])
    column[1] = 7
    assert view.tolist() == [0, 7]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
