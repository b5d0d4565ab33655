"""One profile: its plugins, and for each extension point the list of calls to make, in order.

pluggy finds the implementations and checks their signatures; what it found is frozen into plain lists of bound methods,
because these are walked for every pod.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pluggy
from attrs import define, field, frozen

from trio_sched.engine.plugin_args import plugin_args
from trio_sched.engine.plugin_errors import BadPlugin
from trio_sched.engine.plugin_registry import PluginRegistry, hooks_of
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.extension_points import PROJECT, ExtensionPoints
from trio_sched.plugin_api.handle import Handle
from trio_sched.plugin_api.verdicts import Input

Call = Callable[..., Any]


@frozen
class Caller:
    """One plugin's implementation of one hook, called with all arguments of the hook, by position."""

    plugin: str
    call: Call


@frozen
class FilterCaller(Caller):
    """A filter: does it look at nodes one by one, and what do its answers depend on (None: they are not kept)."""

    per_node: bool = False
    inputs: frozenset[Input] | None = None


@frozen
class ScoreCaller(Caller):
    """A score, with its weight and, if the plugin has one, its normalisation."""

    weight: int = 1
    normalize: Call | None = None
    per_node: bool = False
    inputs: frozenset[Input] | None = None


@define(eq=False)
class Profile:
    """The frozen calls of one schedulerName."""

    name: str
    percentage_of_nodes_to_score: int
    plugins: Mapping[str, Any]
    """Plugin instances by name."""
    pre_enqueue: tuple[Caller, ...]
    queue_sort: tuple[Caller, ...]
    pre_filter: tuple[Caller, ...]
    filter: tuple[FilterCaller, ...]
    post_filter: tuple[Caller, ...]
    pre_score: tuple[Caller, ...]
    score: tuple[ScoreCaller, ...]
    reserve: tuple[Caller, ...]
    unreserve: tuple[Caller, ...]
    permit: tuple[Caller, ...]
    pre_bind_pre_flight: tuple[Caller, ...]
    pre_bind: tuple[Caller, ...]
    bind: tuple[Caller, ...]
    post_bind: tuple[Caller, ...]
    events: tuple[Caller, ...]
    """events_to_register of every plugin that has it."""
    run: tuple[Caller, ...]
    """Background tasks."""
    add_pod: Mapping[str, Call]
    remove_pod: Mapping[str, Call]
    sign: Mapping[str, Call]
    """sign of the plugins whose answers may be kept."""
    inputs: Mapping[str, frozenset[Input]]
    """What the kept answers depend on; plugins that are missing here are asked anew for every pod."""
    rejecting: frozenset[str]
    """Plugins that can turn a pod away: at pre_enqueue, pre_filter, filter, reserve or permit."""
    watches: frozenset[str]
    """Kinds of objects that plugins look at, besides those whose events they have registered for."""
    _signers: tuple[tuple[str, Call], ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        relevant = {caller.plugin for caller in (*self.pre_filter, *self.filter, *self.pre_score, *self.score)}
        self._signers = tuple((name, call) for name, call in self.sign.items() if name in relevant)

    def signature(self, pod: Pod) -> tuple[Hashable, ...]:
        """A value equal for pods that the plugins whose answers are kept cannot tell apart.

        Where a plugin gives no signature for this pod, None stands in its place: it is asked anew.
        """
        return tuple([call(pod) for _name, call in self._signers])

    def kept_plugins(self, signature: Sequence[Hashable]) -> frozenset[str]:
        """The plugins whose answers may be kept for pods of this *signature*."""
        return frozenset(name for (name, _call), part in zip(self._signers, signature, strict=True) if part is not None)


def build_profile(
    name: str,
    points: Mapping[str, Sequence[tuple[str, int]]],
    arguments: Mapping[str, Any],
    registry: PluginRegistry,
    handle: Handle,
    *,
    percentage_of_nodes_to_score: int = 0,
) -> Profile:
    """Load, instantiate and freeze the plugins of one profile.

    Args:
        name: the schedulerName.
        points: extension point (snake case) → (plugin, weight) in order of execution.
        arguments: ``pluginConfig`` by plugin.
        registry: where plugins come from.
        handle: what the plugins get to ask the scheduler with.
        percentage_of_nodes_to_score: of the profile, else of the configuration; 0 looks at every node.

    Raises:
        PluginError: a plugin is missing, ambiguous, broken, or its arguments are.
    """
    names = list(dict.fromkeys(plugin for refs in points.values() for plugin, _weight in refs))
    instances: dict[str, Any] = {}
    hooks: dict[str, set[str]] = {}
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExtensionPoints)
    for plugin in names:
        plugin_class = registry.load(plugin)
        args = plugin_args(plugin, plugin_class, arguments.get(plugin))
        try:
            instance = plugin_class(args, handle)
        except Exception as exc:  # a constructor of somebody else may raise anything
            raise BadPlugin(
                plugin, f"class {plugin_class.__module__}.{plugin_class.__qualname__}", f"initializing failed: {exc}"
            ) from exc
        manager.register(instance, name=plugin)
        instances[plugin] = instance
        hooks[plugin] = set(hooks_of(plugin_class))
    manager.check_pending()
    calls = _frozen_calls(manager)
    inputs = {
        plugin: frozenset(instance.depends_on)
        for plugin, instance in instances.items()
        if getattr(instance, "depends_on", None) is not None and "sign" in hooks[plugin]
    }
    selected = {point: [plugin for plugin, _ in refs] for point, refs in points.items()}

    def callers(point: str, hook: str | None = None) -> tuple[Caller, ...]:
        hook = hook or point
        return tuple(Caller(p, calls[p, hook]) for p in selected.get(point, ()) if (p, hook) in calls)

    def for_every_plugin(hook: str) -> tuple[Caller, ...]:
        return tuple(Caller(p, calls[p, hook]) for p in names if (p, hook) in calls)

    rejecting = {
        p for point in ("pre_enqueue", "pre_filter", "filter", "reserve", "permit") for p in selected.get(point, ())
    }
    return Profile(
        name=name,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        plugins=instances,
        pre_enqueue=callers("pre_enqueue"),
        queue_sort=callers("queue_sort"),
        pre_filter=callers("pre_filter"),
        filter=tuple(
            FilterCaller(
                p,
                calls.get((p, "filter")) or calls[p, "filter_node"],
                per_node="filter_node" in hooks[p],
                inputs=inputs.get(p),
            )
            for p in selected.get("filter", ())
        ),
        post_filter=callers("post_filter"),
        pre_score=callers("pre_score"),
        score=tuple(
            ScoreCaller(
                p,
                calls.get((p, "score")) or calls[p, "score_node"],
                weight=weight or 1,
                normalize=calls.get((p, "normalize_score")),
                per_node="score_node" in hooks[p],
                inputs=inputs.get(p),
            )
            for p, weight in points.get("score", ())
        ),
        reserve=callers("reserve"),
        unreserve=callers("reserve", "unreserve")[::-1],
        permit=callers("permit"),
        pre_bind_pre_flight=callers("pre_bind", "pre_bind_pre_flight"),
        pre_bind=callers("pre_bind"),
        bind=callers("bind"),
        post_bind=callers("post_bind"),
        events=for_every_plugin("events_to_register"),
        run=for_every_plugin("run"),
        add_pod={caller.plugin: caller.call for caller in callers("pre_filter", "add_pod")},
        remove_pod={caller.plugin: caller.call for caller in callers("pre_filter", "remove_pod")},
        sign={p: calls[p, "sign"] for p in names if p in inputs},
        inputs=inputs,
        rejecting=frozenset(rejecting),
        watches=frozenset(kind for instance in instances.values() for kind in getattr(instance, "watches", ())),
    )


def _frozen_calls(manager: pluggy.PluginManager) -> dict[tuple[str, str], Call]:
    """(plugin, hook) → a callable that takes all of the hook's arguments by position."""
    calls: dict[tuple[str, str], Call] = {}
    for hook, spec in inspect.getmembers(ExtensionPoints, inspect.isfunction):
        offered = list(inspect.signature(spec).parameters)[1:]
        for impl in getattr(manager.hook, hook).get_hookimpls():
            calls[impl.plugin_name, hook] = _positional(impl.function, offered, list(impl.argnames))
    return calls


def _positional(function: Call, offered: list[str], taken: list[str]) -> Call:
    if taken == offered:
        return function
    positions = [offered.index(argument) for argument in taken]
    if positions == list(range(len(taken))):
        count = len(taken)
        return lambda *args: function(*args[:count])
    return lambda *args: function(*[args[i] for i in positions])
