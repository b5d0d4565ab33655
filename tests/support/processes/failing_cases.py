"""Many small cases in one test, which names all that fail: a test for each costs more in set-up than in checking."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

T = TypeVar("T")


def failing(cases: Mapping[str, T], check: Callable[[T], object]) -> dict[str, str]:
    """Name → why, of the *cases* for which *check* raises; there must be some cases."""
    assert cases
    found: dict[str, str] = {}
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            found[name] = str(error) or repr(error)
    return found
