import numpy as np
import pytest

from trio_sched.snapshot.arrays import next_capacity, read_only, resized, smaller_capacity


def test_capacity_doubles_and_does_not_begin_too_small() -> None:
    assert [next_capacity(capacity) for capacity in (0, 3, 64, 128)] == [64, 64, 128, 256]


def test_capacity_shrinks_when_less_than_a_quarter_is_used() -> None:
    assert [smaller_capacity(1024, count) for count in (1024, 256, 255, 20, 0)] == [1024, 1024, 510, 64, 64]
    assert smaller_capacity(64, 0) == 64


def test_a_matrix_is_resized_along_its_last_axis() -> None:
    matrix = np.array([[1, 2, 3], [4, 5, 6]])
    assert resized(matrix, 2).tolist() == [[1, 2], [4, 5]]
    assert resized(matrix, 4).tolist() == [[1, 2, 3, 0], [4, 5, 6, 0]]


def test_a_longer_column_keeps_its_type_and_is_filled_up_with_zeros() -> None:
    column = np.array([3, 1], dtype=np.int32)
    grown = resized(column, 4)
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
