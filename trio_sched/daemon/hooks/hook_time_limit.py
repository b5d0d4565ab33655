"""The limit on how long a hook is awaited.

A cancel scope for every bind would cost a pod more than the rest of the call, so the tasks that bind have one each, for
many pods, and one more task looks after the time. All other hooks get a scope of their own, with a deadline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.limits import HOOK_SECONDS


@define(eq=False)
class HookScope:
    """The hooks that are called inside its block, one after the other, are cancelled together with all else in it."""

    has_deadline: bool = True
    """Whether it cancels itself; else `HookScopes` does."""
    shield: bool = False
    """Whether it is not cancelled together with the scope around it."""
    _scope: trio.CancelScope = field(init=False)
    _is_cancelled: bool = field(default=False, init=False)
    """Whether `cancel` was called."""
    _began: float = field(default=math.inf, init=False)
    """When the call began that is being made; infinity if there is none, or its time does not count."""
    _call: int = field(default=0, init=False)
    """The number of the call that is being made; 0 if there is none."""
    _calls: int = field(default=0, init=False)
    _pauses: int = field(default=0, init=False)
    """How many tasks of the call do something whose time does not count."""
    _token: Token[HookScope | None] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._scope = trio.CancelScope(shield=self.shield)

    def __enter__(self) -> HookScope:
        self._scope.__enter__()
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        assert self._token is not None
        _current.reset(self._token)
        return bool(self._scope.__exit__(kind, error, traceback))

    @property
    def cancel_called(self) -> bool:
        """Whether a hook has taken too long."""
        return self._is_cancelled or (self.has_deadline and self._scope.cancel_called)  # which asks for the time

    @property
    def ends(self) -> float:
        """When the call that is being made has taken too long."""
        return self._began + HOOK_SECONDS

    def start(self) -> None:
        """A call begins."""
        self._calls += 1
        self._call, self._pauses = self._calls, 0
        self._count_from(trio.current_time())

    def stop(self) -> None:
        """The call is over."""
        self._call = 0
        self._count_from(math.inf)

    @property
    def is_in_call(self) -> bool:
        """Whether a call is being made whose time is limited."""
        return self._call != 0

    def pause(self) -> int:
        """The time of the call does not count from now on; returns the call."""
        self._pauses += 1
        self._count_from(math.inf)
        return self._call

    def resume(self, call: int) -> None:
        """The time of *call* counts again, from zero; a task that has outlived its call resumes nothing."""
        if call == self._call:
            self._pauses -= 1
            if not self._pauses:
                self._count_from(trio.current_time())

    def _count_from(self, seconds: float) -> None:
        self._began = seconds
        if self.has_deadline:
            self._scope.deadline = seconds + HOOK_SECONDS

    def cancel(self) -> None:
        """The call has taken too long."""
        self._is_cancelled = True
        self._scope.cancel()


_current: ContextVar[HookScope | None] = ContextVar("hook_scope", default=None)


def current_hook_scope() -> HookScope | None:
    """The scope that this task is in."""
    return _current.get()


def time_does_not_count() -> AbstractContextManager[None]:
    """What a hook does inside the block has limits of its own; the time of the hook starts over after it."""
    scope = _current.get()
    return _NOTHING_TO_PAUSE if scope is None or not scope.is_in_call else _paused(scope)


_NOTHING_TO_PAUSE: Final = nullcontext()


@contextmanager
def _paused(scope: HookScope) -> Iterator[None]:
    call = scope.pause()
    try:
        yield
    finally:
        scope.resume(call)


@define(eq=False)
class HookScopes:
    """The scopes of tasks that call hooks for one pod after the other."""

    _scopes: set[HookScope] = field(factory=set)

    @contextmanager
    def open(self) -> Iterator[HookScope]:
        """A scope for the calling task."""
        with HookScope(has_deadline=False) as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    async def run(self) -> None:
        """Cancel the scopes of calls that take too long; runs until cancelled."""
        while True:
            now = trio.current_time()
            for scope in self._scopes:
                if scope.ends <= now:
                    scope.stop()
                    scope.cancel()
            ends = min((scope.ends for scope in self._scopes), default=math.inf)
            await trio.sleep_until(min(ends, now + HOOK_SECONDS))  # a call that begins meanwhile ends later than that
