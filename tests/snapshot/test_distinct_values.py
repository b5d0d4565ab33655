import numpy as np
import pytest

from trio_sched.snapshot.distinct_values import per_distinct_value


@pytest.mark.parametrize("ids", [[], [3], [5, 5, 0], [99, 7, 99], list(range(100)) * 2])
@pytest.mark.parametrize("count", [100, 1000])
def test_each_value_that_is_needed_is_evaluated_once(ids: list[int], count: int) -> None:
    evaluated: list[str] = []

    def length(value: str) -> int:
        evaluated.append(value)
        return len(value)

    values = ["x" * i for i in range(count)]
    found = per_distinct_value(np.array(ids, dtype=np.int32), values, length, np.int64)
    assert (found.tolist(), found.dtype) == (ids, np.dtype(np.int64))
    assert len(evaluated) == len(set(evaluated))
    if len(ids) < count:
        assert len(evaluated) == len(set(ids))
