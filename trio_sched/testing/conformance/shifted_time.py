"""Has Python's clocks show another time, for a plugin that should not look at them."""

from __future__ import annotations

import datetime as real_datetime
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, Final

Namespace = dict[str, Any]
"""The global names of a module."""
_EPOCH: Final = 1_767_225_600.0
"""The time that all clocks count from: the beginning of 2026, UTC."""
_TICK: Final = 1e-6
"""How much later each reading is, so that a loop that waits for a time ends."""


@contextmanager
def shifted_time(seconds: float, namespaces: Iterable[Namespace]) -> Iterator[ShiftedClock]:
    """Inside the block, clocks begin at 2026-01-01 and *seconds*, and go on at each reading.

    Args:
        seconds: the shift.
        namespaces: in which functions of clocks may have been imported by their names.
    """
    clock = ShiftedClock(_EPOCH + seconds)
    replaced = clock.functions()
    classes = {real_datetime.datetime: clock.datetime_class(), real_datetime.date: clock.date_class()}
    originals: dict[int, Any] = {id(getattr(time, name)): new for name, new in replaced.items()}
    originals |= {id(old): new for old, new in classes.items()}
    places = [(one, name) for one in namespaces for name, value in one.items() if id(value) in originals]
    places += [(vars(time), name) for name in replaced]
    places += [(vars(real_datetime), old.__name__) for old in classes]
    undo = [(one, name, one[name]) for one, name in places]
    try:
        for one, name, old in undo:
            one[name] = originals[id(old)]
        yield clock
    finally:
        for one, name, old in undo:
            one[name] = old


def namespaces_of(plugin: Any) -> list[Namespace]:
    """The global names of the package of a plugin, by module, as far as it is imported."""
    kinds = [base for base in type(plugin).__mro__ if base is not object]
    packages = {(base.__module__ or "").partition(".")[0] for base in kinds} - {"builtins", "trio_sched"}
    found = [
        vars(module)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in packages and isinstance(module, ModuleType)
    ]
    functions = [value for base in kinds for value in vars(base).values() if isinstance(value, FunctionType)]
    found += [function.__globals__ for function in functions if function.__module__.partition(".")[0] in packages]
    return list({id(one): one for one in found}.values())


class ShiftedClock:
    """Stands for all of Python's clocks."""

    def __init__(self, seconds: float) -> None:
        self.began = self.seconds = seconds

    def reset(self) -> None:
        """Show the first time again."""
        self.seconds = self.began

    def now(self) -> float:
        """The time, a bit later at every call."""
        self.seconds += _TICK
        return self.seconds

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What replaces the functions of the module ``time``."""
        gmtime, localtime, strftime, ctime, asctime = (
            time.gmtime,
            time.localtime,
            time.strftime,
            time.ctime,
            time.asctime,
        )
        seconds = ("time", "monotonic", "perf_counter")
        return {
            **{name: self.now for name in seconds},
            **{f"{name}_ns": lambda: round(self.now() * 1e9) for name in seconds},
            "gmtime": lambda at=None: gmtime(self.now() if at is None else at),
            "localtime": lambda at=None: localtime(self.now() if at is None else at),
            "strftime": lambda form, at=None: strftime(form, localtime(self.now()) if at is None else at),
            "ctime": lambda at=None: ctime(self.now() if at is None else at),
            "asctime": lambda at=None: asctime(localtime(self.now()) if at is None else at),
        }

    def datetime_class(self) -> type[real_datetime.datetime]:
        """What replaces ``datetime.datetime``; ordinary datetimes count as its instances."""
        clock, real = self, real_datetime.datetime

        class Shifted(real, metaclass=_LikeTheReal):  # type: ignore[misc,valid-type]  # a class in a variable
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return real.fromtimestamp(clock.now(), tz)

            @classmethod
            def utcnow(cls) -> Any:
                return real.fromtimestamp(clock.now(), real_datetime.UTC).replace(tzinfo=None)

            @classmethod
            def today(cls) -> Any:
                return real.fromtimestamp(clock.now())

        return Shifted

    def date_class(self) -> type[real_datetime.date]:
        """What replaces ``datetime.date``."""
        clock, real = self, real_datetime.date

        class Shifted(real, metaclass=_LikeTheReal):  # type: ignore[misc,valid-type]  # a class in a variable
            @classmethod
            def today(cls) -> Any:
                return real.fromtimestamp(clock.now())

        return Shifted


class _LikeTheReal(type):
    """isinstance answers as for the class that is replaced."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])
