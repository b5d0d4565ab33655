"""Hooks of plugin instances, ready to be called with all arguments of the hook by position."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Final, Protocol

from attrs import define, field

from trio_sched.plugin_api.verdicts import Domain, Input

HookFunction = Callable[..., Any]
Wrapper = Callable[[HookFunction], HookFunction]
"""Makes of a function another one, which calls it."""


class Guard(Protocol):
    """Is told how calls have ended; see `failure_guard`."""

    def failed(self, failed: Any, pod: str = "", *, has_neutral: bool = True) -> bool:
        """A call has failed; whether its answer is a neutral one."""

    def succeeded(self, hook: str) -> None:
        """A call of *hook* has not failed."""


PRE_BIND_TIMEOUT: Final = "pre_bind_timeout_seconds"
"""The attribute with which a plugin says how long its pre_bind may be awaited."""


@define(eq=False)
class BoundHook:
    """One plugin's implementation of one hook."""

    plugin: str
    hook: str
    """The name of the hook, ``filter_node`` for instance."""
    function: HookFunction
    """What is called: the plugin's own function, or while there are wrappers what these have made of it."""
    source: str = ""
    """Distribution, version and class that the plugin comes from."""
    built_in: bool = False
    """Whether the plugin is one of this project: its hooks have limits of their own and are not timed."""
    guard: Guard | None = None
    """Set on hooks that are awaited, of plugins that do not always fail closed."""
    code: CodeType | None = None
    """The code of the plugin's own function, if it is a plugin of another package."""
    timeout_seconds: float | None = None
    """How long it may be awaited, if the plugin says so."""
    _wrappers: tuple[Wrapper, ...] = field(default=(), init=False)
    """The innermost first."""
    _unwrapped: HookFunction | None = field(default=None, init=False)
    """The plugin's own function, while there are wrappers."""

    def wrap(self, wrapper: Wrapper, *, innermost: bool = False) -> Callable[[], None]:
        """Have calls go through what *wrapper* makes of the function.

        Args:
            wrapper: returns a function that is called instead of the one that it is given.
            innermost: other wrappers are around it, whether they are there already or come later.

        Returns:
            What undoes that, once; in any order with other wrappers.
        """
        self._rewrap((wrapper, *self._wrappers) if innermost else (*self._wrappers, wrapper))
        return lambda: self._rewrap(tuple(one for one in self._wrappers if one is not wrapper))

    def _rewrap(self, wrappers: tuple[Wrapper, ...]) -> None:
        function = self.function if self._unwrapped is None else self._unwrapped
        self._wrappers, self._unwrapped = wrappers, function if wrappers else None
        for wrapper in wrappers:
            function = wrapper(function)
        self.function = function

    @property
    def place(self) -> str:
        """File and line of the plugin's function; empty if they are not known."""
        return "" if self.code is None else f"{self.code.co_filename}, line {self.code.co_firstlineno}"


@define(eq=False)
class FilterHook(BoundHook):
    """``filter``, or ``filter_node`` if *per_node*; *depends_on* is what its results depend on (None: not declared)."""

    per_node: bool = False
    depends_on: frozenset[Input | Domain] | None = None


@define(eq=False)
class ScoreHook(BoundHook):
    """``score``, or ``score_node`` if *per_node*, with its weight and the plugin's normalize_score if it has one."""

    weight: int = 1
    normalize: BoundHook | None = None
    per_node: bool = False
    depends_on: frozenset[Input | Domain] | None = None
