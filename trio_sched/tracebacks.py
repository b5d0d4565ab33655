"""Drops tracebacks that nobody is going to print."""

from __future__ import annotations


def forget_tracebacks(error: BaseException | None) -> None:
    """Drop the tracebacks of *error*, of its causes and of what was raised before it.

    A traceback holds the variables of all functions that were running, pods and snapshots among them. If the error is
    in one of these, it holds itself, and all of it stays until the garbage collector looks for that.
    """
    found, left = set[int](), [error]
    while left:
        one = left.pop()
        if one is None or id(one) in found:
            continue
        found.add(id(one))
        BaseException.with_traceback(one, None)  # plugins can override anything in classes of their own, __class__ too
        left += (_cause(one), _context(one))
        if issubclass(type(one), BaseExceptionGroup):
            left += _exceptions(one)


_cause = BaseException.__dict__["__cause__"].__get__
_context = BaseException.__dict__["__context__"].__get__
_exceptions = BaseExceptionGroup.__dict__["exceptions"].__get__
