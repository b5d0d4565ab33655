import numpy as np
import pytest

from plugins_builtin._normalize import default_normalize


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        ([0, 1, 2], False, [0, 50, 100]),
        ([0, 1, 2], True, [100, 50, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([1, 3], False, [33, 100]),
        ([1, 3], True, [67, 0]),
        ([], True, []),
    ],
)
def test_the_highest_becomes_100(scores: list[int], reverse: bool, expected: list[int]) -> None:
    assert default_normalize(np.array(scores, dtype=np.int64), reverse=reverse).tolist() == expected
