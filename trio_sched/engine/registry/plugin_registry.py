"""From entry points to plugin classes; names everything that can be wrong on the way.

Discovery imports nothing: only what a profile enables is loaded. The built-in plugins come through the same entry
point group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from typing import Any, Final

from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import PRE_BIND_TIMEOUT
from trio_sched.engine.hooks.failure_policy import check_failure_policy, read_failure_policy
from trio_sched.engine.hooks.plugin_errors import (
    AmbiguousPlugin,
    BadPlugin,
    IncompatiblePlugin,
    PluginError,
    PluginLoadError,
    PluginNotAllowed,
    UnknownPlugin,
    UnreadableDistribution,
)
from trio_sched.engine.registry.likely_mistakes import close_attributes, unmarked_hooks
from trio_sched.errors import nearest_name
from trio_sched.go.text import shortened
from trio_sched.interrupts import raise_interrupt
from trio_sched.plugin_api.api_version import API_VERSION, offers_api, read_api_version
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.extension_points import (
    ASYNC_HOOKS,
    FORMER_POINT_OF_HOOK,
    HOOK_NAMES,
    POINT_OF_HOOK,
    PROJECT,
    ExtensionPoints,
)
from trio_sched.plugin_api.verdicts import Domain, Input

PluginClass = type[Any]
"""A class with ``name`` and ``__init__(self, args, handle)``, and methods marked as hooks."""

Exclusion = Callable[[str, EntryPoint], str]
"""Says by which flag the plugin of a name and an entry point is excluded; empty if it is not."""

_OWN_MODULES: Final = ("plugins_builtin.", "trio_sched.")
_MAX_NAME: Final = 200
_LONGEST_TIMEOUT_SECONDS: Final = 86_400
_IMPL_MARK = f"{PROJECT}_impl"
_MRO: Final[Any] = type.__dict__["__mro__"]
_ATTRIBUTES: Final[Any] = type.__dict__["__dict__"]
_EXCLUSIVE_HOOKS = (("filter", "filter_node"), ("score", "score_node"))


def _excludes_nothing(_name: str, _entry_point: EntryPoint) -> str:
    return ""


@define(eq=False)
class PluginRegistry:
    """The plugins that are installed, by the name that the configuration file uses."""

    _entry_points: dict[str, list[EntryPoint]]
    _loaded: dict[str, PluginClass] = field(factory=dict)
    _sources: dict[str, str] = field(factory=dict)
    _exclusion: Exclusion = field(default=_excludes_nothing)

    @classmethod
    def discover(cls) -> PluginRegistry:
        """Look up what is installed, without importing it.

        Raises:
            UnreadableDistribution: the entry points of a distribution cannot be read.
        """
        try:
            return cls.of(entry_points(group=PROJECT))
        except Exception as exc:  # the metadata of any package, and what importlib.metadata makes of it
            raise UnreadableDistribution(_where_unreadable(), exc) from exc

    @classmethod
    def of(cls, found: Iterable[EntryPoint]) -> PluginRegistry:
        """A registry of just these entry points."""
        by_name: dict[str, list[EntryPoint]] = {}
        for entry_point in found:
            candidates = by_name.setdefault(entry_point.name, [])
            if entry_point not in candidates:  # the same distribution can be on the path twice
                candidates.append(entry_point)
        return cls(by_name)

    def copy(self) -> PluginRegistry:
        """Another registry with the same plugins; what is added there is not offered here."""
        return PluginRegistry(dict(self._entry_points), dict(self._loaded), dict(self._sources), self._exclusion)

    @property
    def names(self) -> list[str]:
        """All names on offer, sorted."""
        return sorted({*self._entry_points, *self._loaded})

    def __contains__(self, name: object) -> bool:
        return name in self._entry_points or name in self._loaded

    def add(self, plugin: PluginClass) -> None:
        """Offer a class directly; for tests and one-file experiments.

        Raises:
            AmbiguousPlugin: the name is taken.
            BadPlugin: the class is no plugin.
        """
        source = f"class {plugin.__module__}.{plugin.__qualname__}"
        name = getattr(plugin, "name", plugin.__name__)
        if name in self:
            raise AmbiguousPlugin(name, [*map(describe_source, self._entry_points.get(name, ())), source])
        check_contract(name, source, plugin)
        self._loaded[name], self._sources[name] = plugin, source

    def exclude(self, exclusion: Exclusion) -> None:
        """Load no plugin that *exclusion* has something against."""
        self._exclusion = exclusion

    def put(self, plugin: PluginClass, source: str) -> list[str]:
        """Offer a class that keeps the contract, in place of an installed plugin of its name.

        Args:
            plugin: the class; see `check_contract`.
            source: where it comes from.

        Returns:
            What it replaces: the sources of the plugins of its name.
        """
        replaced = self.sources(plugin.name)
        self._loaded[plugin.name], self._sources[plugin.name] = plugin, source
        self._entry_points.pop(plugin.name, None)
        return replaced

    def sources(self, name: str) -> list[str]:
        """Where the plugin *name* comes from: distribution, version and object."""
        return [describe_source(entry_point) for entry_point in self._entry_points.get(name, ())]

    def entry_points(self, name: str) -> list[EntryPoint]:
        """Every entry point that offers *name*; more than one is an error once it is loaded."""
        return list(self._entry_points.get(name, ()))

    def source(self, name: str) -> str:
        """Where the loaded plugin *name* comes from."""
        return self._sources[name]

    def load(self, name: str) -> PluginClass:
        """Import the plugin class *name* and check that it keeps the contract.

        Raises:
            UnknownPlugin: no distribution offers the name.
            AmbiguousPlugin: more than one distribution does.
            PluginNotAllowed: a flag excludes it.
            PluginLoadError: the import failed.
            BadPlugin: it is not what a plugin must be.
            IncompatiblePlugin: it needs another version of the plugin API.
        """
        loaded = self._loaded.get(name)
        if loaded is not None:
            return loaded
        candidates = self._entry_points.get(name, [])
        if len(candidates) > 1:  # what may not be imported does not make a name ambiguous
            candidates = [one for one in candidates if not self._exclusion(name, one)] or candidates
        if not candidates:
            raise UnknownPlugin(name, nearest_name(name, [*self._entry_points, *self._loaded]))
        if len(candidates) > 1:
            raise AmbiguousPlugin(name, map(describe_source, candidates))
        (entry_point,) = candidates
        source = describe_source(entry_point)
        if rule := self._exclusion(name, entry_point):
            raise PluginNotAllowed(name, source, rule)
        try:
            plugin = entry_point.load()
            if not is_built_in(plugin):
                check_contract(name, source, plugin)
        except PluginError:
            raise
        except BaseException as exc:  # third-party code may raise anything, SystemExit too
            raise_interrupt(exc)
            raise PluginLoadError(name, source, exc) from exc
        self._loaded[name], self._sources[name] = plugin, source
        return plugin  # type: ignore[no-any-return]  # an entry point may hold anything; check_contract looked


def describe_source(entry_point: EntryPoint) -> str:
    """*entry_point* in words: distribution, version, and the object it names."""
    if entry_point.dist is None:
        return entry_point.value
    return f"{describe_distribution(entry_point.dist)} ({entry_point.value})"


@lru_cache(maxsize=256)  # reading the metadata of a distribution takes a millisecond, and it may have many plugins
def describe_distribution(distribution: Distribution) -> str:
    """Its name and version, or where it is if its metadata does not say."""
    try:
        name, version = distribution.name, distribution.version
    except Exception:  # metadata that is no text
        name = version = ""
    return f"{name} {version}" if name else f"a distribution without a name in {distribution.locate_file('')}"


def _where_unreadable() -> str:
    """The folder with the first distribution whose entry points cannot be read."""
    for distribution in distributions():
        try:
            _ = distribution.name, distribution.entry_points
        except Exception:
            return str(distribution.locate_file(""))
    return "the path"


def is_built_in(plugin: object) -> bool:
    """Whether it is a plugin of this distribution: its tests check it, so no start does, and nothing times it."""
    return inspect.isclass(plugin) and str(plugin.__module__).startswith(_OWN_MODULES)


def hooks_of(plugin: PluginClass) -> list[str]:
    """The hooks that *plugin* implements, in the order a pod meets them."""
    return [hook for hook in HOOK_NAMES if _is_marked(plugin, hook)]


def points_of(plugin: PluginClass) -> frozenset[str]:
    """The extension points (as in the configuration file, in snake case) that *plugin* extends."""
    hooks = hooks_of(plugin)
    return frozenset(
        points[hook] for points in (POINT_OF_HOOK, FORMER_POINT_OF_HOOK) for hook in hooks if hook in points
    )


def _is_marked(plugin: PluginClass, name: str) -> bool:
    # As inspect.getattr_static, which takes a tenth of the start for all hooks of all plugins.
    for base in _MRO.__get__(plugin):
        attributes = _ATTRIBUTES.__get__(base)
        if name in attributes:
            return hasattr(attributes[name], _IMPL_MARK)
    return False


def check_contract(name: str, source: str, plugin: object) -> None:
    """Check that *plugin* is a class whose hooks exist and take arguments that are offered.

    Raises:
        BadPlugin: the first thing that is wrong, and how to fix it.
        IncompatiblePlugin: it needs another version of the plugin API.
    """
    if not inspect.isclass(plugin):
        raise BadPlugin(name, source, f"the entry point must name a class, but it names a {type(plugin).__name__}")
    given = getattr(plugin, "name", None)
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        rule = f"a name has 1 to {_MAX_NAME} printable characters"
        raise BadPlugin(shortened(name), source, f"its name cannot be written to a log or a configuration: {rule}")
    if given != name:
        close = close_attributes(plugin, "name")
        missing = f"has no name, but {close[0]}" if close else "has no name"
        found = missing if given is None else f"says name = {given!r}"
        raise BadPlugin(name, source, f"its class {found}; set name = {name!r}, the key of its entry point")
    check_api_version(name, source, plugin)
    marked = [attribute for attribute in dir(plugin) if _is_marked(plugin, attribute)]
    if not marked:
        unmarked = unmarked_hooks(plugin)
        fix = f"; put @hookimpl above {', '.join(unmarked)}" if unmarked else ""
        raise BadPlugin(name, source, f"no method is marked with @hookimpl, so it would never be called{fix}")
    for hook in marked:
        if hook not in HOOK_NAMES:
            near = nearest_name(hook, HOOK_NAMES)
            fix = f"did you mean {near!r}?" if near else f"hooks are {', '.join(HOOK_NAMES)}"
            raise BadPlugin(name, source, f"there is no hook {hook!r}; {fix}")
        function = getattr(plugin, hook)
        _check_arguments(name, source, hook, function)
        _check_kind_of_function(name, source, hook, function)
    for whole, single in _EXCLUSIVE_HOOKS:
        if whole in marked and single in marked:
            raise BadPlugin(name, source, f"it has both {whole!r} and {single!r}; keep one of them")
    check_attributes(name, source, plugin)
    _check_constructor(name, source, plugin)
    _check_args(name, source, plugin)


def check_api_version(name: str, source: str, plugin: type[Any]) -> None:
    """Check that the plugin API is one that *plugin* can use.

    Raises:
        BadPlugin: its ``requires_api`` is no version.
        IncompatiblePlugin: it is not.
    """
    wanted = getattr(plugin, "requires_api", None)
    if wanted is None:
        return
    version = read_api_version(wanted)
    if version is None:
        raise BadPlugin(
            name, source, f'its requires_api must be "major.minor", {API_VERSION!r} for instance; it is {wanted!r}'
        )
    if not offers_api(version):
        raise IncompatiblePlugin(name, source, wanted)


def _check_args(name: str, source: str, plugin: type[Any]) -> None:
    """Whether its arguments can be read from a file, and the defaults are what they should be."""
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        return
    from trio_sched.engine.registry.argument_classes import UnreadableArgs, record_of

    try:
        record_of(wanted)
    except UnreadableArgs as error:
        raise BadPlugin(name, source, f"its Args: {error}") from error


def _check_constructor(name: str, source: str, plugin: type[Any]) -> None:
    try:
        inspect.signature(plugin).bind(None, None)
    except TypeError as exc:
        fix = "write `def __init__(self, args, handle):`"
        raise BadPlugin(name, source, f"its constructor does not take (args, handle): {exc}; {fix}") from None
    except ValueError:  # it cannot be inspected; whether it can be called shows when it is
        return


def check_attributes(name: str, source: str, plugin: object) -> None:
    """Check what a class declares, or an instance, because a constructor may do so: ``watches``, for instance.

    Raises:
        BadPlugin: one is no collection of what it must hold, a text for instance.
    """
    _check_attribute(name, source, plugin, "depends_on", (Input, Domain), "members of Input and Domain")
    kinds = 'names of kinds, or of CustomResource: ("Service",) for instance'
    _check_attribute(name, source, plugin, "watches", (str, CustomResource), kinds)
    for flag in ("run_once_per_process", "run_on_leader_only"):
        value = _value(plugin, flag)
        if value is not None and not isinstance(value, bool):
            raise BadPlugin(name, source, f"its {flag} must be True or False; it is {value!r}")
    seconds = _value(plugin, PRE_BIND_TIMEOUT)
    if seconds is not None and not (type(seconds) in (int, float) and 0 < seconds <= _LONGEST_TIMEOUT_SECONDS):
        what = f"a number of seconds, more than 0 and at most {_LONGEST_TIMEOUT_SECONDS}"
        raise BadPlugin(name, source, f"its {PRE_BIND_TIMEOUT} must be {what}; it is {seconds!r}")
    _check_writes(name, source, plugin)
    _check_on_failure(name, source, plugin)


def _check_on_failure(name: str, source: str, plugin: object) -> None:
    value = _value(plugin, "on_failure")
    if value is None:
        return
    try:
        policy = read_failure_policy(value)
    except ValueError as error:
        raise BadPlugin(name, source, f"its on_failure: {error}") from None
    check_failure_policy(name, source, policy, hooks_of(plugin if inspect.isclass(plugin) else type(plugin)))


def _check_writes(name: str, source: str, plugin: object) -> None:
    value = _value(plugin, "writes")
    if value is None:
        return
    if not isinstance(value, Mapping) or not all(
        isinstance(kind, str | CustomResource)
        and isinstance(verbs, tuple | list | set | frozenset)
        and all(isinstance(verb, str) for verb in verbs)
        for kind, verbs in value.items()
    ):
        what = 'verbs by kind: {"PersistentVolume": ("patch",)} for instance'
        raise BadPlugin(name, source, f"its writes must be {what}; it is {value!r}")


def _value(plugin: object, attribute: str) -> Any:
    """The attribute of a class or an instance; None for a property of a class, which only instances have."""
    if not inspect.isclass(plugin):
        return getattr(plugin, attribute, None)
    value = inspect.getattr_static(plugin, attribute, None)
    return None if inspect.isdatadescriptor(value) else value


def _check_attribute(
    name: str, source: str, plugin: object, attribute: str, of: type[Any] | tuple[type[Any], ...], what: str
) -> None:
    value = _value(plugin, attribute)
    if value is None:
        return
    if not isinstance(value, tuple | list | set | frozenset) or not all(isinstance(part, of) for part in value):
        raise BadPlugin(name, source, f"its {attribute} must be a tuple or set of {what}; it is {value!r}")


def _check_kind_of_function(name: str, source: str, hook: str, function: Any) -> None:
    """Whether a call of *function* returns a value, or a coroutine or generator that would never run."""
    function = inspect.unwrap(function)
    is_async = inspect.iscoroutinefunction(function)
    if hook == "run" and not is_async:
        raise BadPlugin(name, source, "hook 'run' works in the background, so it must be `async def`")
    if is_async and hook not in ASYNC_HOOKS:
        allowed = ", ".join(ASYNC_HOOKS)
        raise BadPlugin(
            name,
            source,
            f"hook {hook!r} is `async def`, but it has to return at once: write it as plain `def` "
            f"(hooks that may be async: {allowed}; work that takes time belongs there)",
        )
    may_yield = hook in ("clauses", "events_to_register")
    if inspect.isasyncgenfunction(function) or (inspect.isgeneratorfunction(function) and not may_yield):
        raise BadPlugin(name, source, f"hook {hook!r} is a generator (it has a `yield`), but it has to return a value")


def _check_arguments(name: str, source: str, hook: str, function: Any) -> None:
    allowed = list(inspect.signature(getattr(ExtensionPoints, hook)).parameters)[1:]
    for argument, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadPlugin(name, source, f"hook {hook!r} must take plain arguments, not {str(parameter)!r}")
        if argument not in allowed:
            offered = ", ".join(allowed) if allowed else "none"
            near = nearest_name(argument, allowed)
            fix = f"; did you mean {near!r}?" if near else ""
            raise BadPlugin(
                name,
                source,
                f"hook {hook!r} has an argument {argument!r} that is not offered (offered: {offered}){fix}",
            )
