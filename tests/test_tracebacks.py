import contextlib
import gc
import weakref

import pytest

from trio_sched.tracebacks import forget_tracebacks


class Held:
    """Stands for a pod among the variables of a function."""


def raise_with(held: Held) -> None:
    try:
        raise KeyError("first")
    except KeyError as first:
        try:
            raise ValueError("second") from first
        except ValueError:
            raise ExceptionGroup("third", [caught(held)])  # noqa: B904


def caught(held: Held) -> Exception:
    try:
        raise OSError("inside of the group")
    except OSError as problem:
        return problem


def test_nothing_is_held_by_an_error_whose_tracebacks_are_forgotten() -> None:
    held = Held()
    gone = weakref.ref(held)
    with pytest.raises(ExceptionGroup) as raised:
        raise_with(held)
    error = raised.value
    forget_tracebacks(error)
    del held, raised
    gc.collect()
    assert gone() is None
    assert str(error.__context__) == "second"
    assert str(error.exceptions[0]) == "inside of the group"


def test_errors_that_cause_each_other_are_no_problem() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    forget_tracebacks(first)
    forget_tracebacks(None)
    assert first.__cause__ is second
    assert second.__cause__ is first


def test_errors_that_have_overridden_everything_are_no_problem() -> None:
    class Hostile(Exception):
        __cause__ = __context__ = __class__ = property(lambda _self: 1 / 0)  # type: ignore[assignment]

        def with_traceback(self, _traceback: object) -> "Hostile":
            raise RuntimeError

    error = Hostile()
    with contextlib.suppress(Hostile):
        raise error
    forget_tracebacks(error)
    assert error.__traceback__ is None
