"""One profile: its plugins, and for each extension point the hooks to call, in order.

What pluggy finds in the plugins is frozen into plain tuples of bound hooks, because these are walked for every pod.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any

from attrs import define, field, fields

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.engine.hooks.bound_hooks import PRE_BIND_TIMEOUT, BoundHook, FilterHook, HookFunction, ScoreHook
from trio_sched.engine.hooks.failure_guard import FailureGuard, FailureGuards
from trio_sched.engine.hooks.guarded_hooks import guarded
from trio_sched.engine.hooks.hook_failure import describe_error, place_in_plugin
from trio_sched.engine.hooks.measurements import Measurements, ProfileMeasurements
from trio_sched.engine.hooks.plugin_calls import call_sign
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.registry.hook_functions import hook_functions
from trio_sched.engine.registry.plugin_args import plugin_args
from trio_sched.engine.registry.plugin_registry import PluginRegistry, check_attributes, hooks_of, is_built_in
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.extension_points import ASYNC_HOOKS, FORMER_POINT_OF_HOOK
from trio_sched.plugin_api.handle import Handle
from trio_sched.plugin_api.verdicts import Domain, Input


@define(eq=False)
class Profile:
    """The bound hooks of one schedulerName."""

    name: str
    percentage_of_nodes_to_score: int
    plugins: Mapping[str, Any]
    """Plugin instances by name."""
    pre_enqueue: tuple[BoundHook, ...]
    queue_sort: tuple[BoundHook, ...]
    pre_filter: tuple[BoundHook, ...]
    filter: tuple[FilterHook, ...]
    post_filter: tuple[BoundHook, ...]
    pre_score: tuple[BoundHook, ...]
    score: tuple[ScoreHook, ...]
    reserve: tuple[BoundHook, ...]
    unreserve: tuple[BoundHook, ...]
    permit: tuple[BoundHook, ...]
    placement_generate: tuple[BoundHook, ...]
    placement_feasible: tuple[BoundHook, ...]
    """The hook of every plugin that has it."""
    placement_score: tuple[ScoreHook, ...]
    pod_group_post_filter: tuple[BoundHook, ...]
    pre_bind_pre_flight: tuple[BoundHook, ...]
    pre_bind: tuple[BoundHook, ...]
    bind: tuple[BoundHook, ...]
    post_bind: tuple[BoundHook, ...]
    events_to_register: tuple[BoundHook, ...]
    """The hook of every plugin that has it."""
    clauses: Mapping[str, BoundHook]
    """Called only while a pod is explained."""
    run: tuple[BoundHook, ...]
    """Background tasks."""
    add_pod: Mapping[str, BoundHook]
    remove_pod: Mapping[str, BoundHook]
    sign: Mapping[str, BoundHook]
    """sign of the plugins whose results may be cached."""
    depends_on: Mapping[str, frozenset[Input | Domain]]
    """What cached results depend on; plugins that are missing here are called for every pod."""
    rejector_plugins: frozenset[str]
    """Plugins that can reject a pod: at pre_enqueue, pre_filter, filter, reserve or permit."""
    watches: frozenset[str | CustomResource[Any]]
    """Kinds of objects that plugins read, besides those whose events they have registered for."""
    sources: Mapping[str, str]
    """Plugin → where it comes from."""
    measured: ProfileMeasurements = field(init=False, factory=lambda: Measurements().add_profile(""))
    """Where its cycles are measured; replaced once it is scheduled with."""
    plugins_with_later_hooks: frozenset[str] = field(init=False)
    """Plugins with hooks after the filters and scores, which may read what their pre_filter or pre_score has stored."""
    _sign_hooks: tuple[BoundHook, ...] = field(init=False)
    _sign_positions: dict[str, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        relevant = {hook.plugin for hook in (*self.pre_filter, *self.filter, *self.pre_score, *self.score)}
        self._sign_hooks = tuple(hook for name, hook in self.sign.items() if name in relevant)
        self._sign_positions = {hook.plugin: position for position, hook in enumerate(self._sign_hooks)}
        cycle = (*self.post_filter, *self.reserve, *self.unreserve, *self.permit)
        binding = (*self.pre_bind_pre_flight, *self.pre_bind, *self.bind, *self.post_bind)
        self.plugins_with_later_hooks = frozenset(hook.plugin for hook in (*cycle, *binding))

    @property
    def hooks(self) -> list[BoundHook]:
        """Every bound hook, those of all extension points."""
        found: list[BoundHook] = []
        for attribute in fields(Profile):
            value = getattr(self, attribute.name)
            bound = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ()
            found += [hook for hook in bound if isinstance(hook, BoundHook)]
        scorers = (*self.score, *self.placement_score)
        found += [scorer.normalize for scorer in scorers if scorer.normalize is not None]
        return list({id(hook): hook for hook in found}.values())

    def signature(self, pod: Pod) -> tuple[Hashable, ...]:
        """A value equal for pods that the plugins whose results are cached cannot tell apart.

        Where a plugin gives no signature for this pod, None stands in its place: it is called for this pod.

        Raises:
            HookFailed: a plugin failed.
        """
        return call_sign(self._sign_hooks, pod)

    def part_of_signature(self, plugin: str, signature: Sequence[Hashable]) -> Hashable | None:
        """What *plugin* has given for pods of this *signature*; None if its results must not be cached."""
        position = self._sign_positions.get(plugin)
        return None if position is None else signature[position]

    def cached_plugins(self, signature: Sequence[Hashable]) -> frozenset[str]:
        """The plugins whose results may be cached for pods of this *signature*."""
        return frozenset(
            hook.plugin for hook, part in zip(self._sign_hooks, signature, strict=True) if part is not None
        )


def measure(name: str, profile: Profile, measurements: Measurements) -> None:
    """Have the cycles of *profile* measured under *name* from now on."""
    normalizing = [scorer.normalize for scorer in profile.score if scorer.normalize is not None]
    by_point: dict[str, Sequence[BoundHook]] = {
        "PreFilter": profile.pre_filter,
        "Filter": profile.filter,
        "PreScore": profile.pre_score,
        "Score": profile.score,
    }
    profile.measured = measurements.add_profile(
        name,
        in_decision=[*(hook for hooks in by_point.values() for hook in hooks), *normalizing],
        after_decision=[*profile.reserve, *profile.permit, *profile.pre_bind_pre_flight, *profile.unreserve],
        plugins={point: tuple(hook.plugin for hook in hooks) for point, hooks in by_point.items()},
    )


def build_profile(
    resolved: ResolvedProfile,
    registry: PluginRegistry,
    handle_of: Callable[[str], Handle],
    failure_guards: FailureGuards | None = None,
) -> Profile:
    """Load and instantiate the plugins of one profile and bind their hooks.

    Args:
        resolved: the profile.
        registry: where plugins come from.
        handle_of: gives the handle of the plugin of that name.
        failure_guards: says which plugins do not fail closed; None: all do.

    Raises:
        PluginError: a plugin is missing, ambiguous, broken, or its arguments are.
    """
    points, names = resolved.points, resolved.plugins
    instances: dict[str, Any] = {}
    hooks: dict[str, set[str]] = {}
    sources: dict[str, str] = {}
    functions: dict[tuple[str, str], HookFunction] = {}
    for plugin in names:
        plugin_class = registry.load(plugin)
        sources[plugin] = registry.source(plugin)
        args = plugin_args(plugin, plugin_class, resolved.arguments.get(plugin))
        try:
            instance = plugin_class(args, handle_of(plugin))
            check_attributes(plugin, sources[plugin], instance)
            hooks[plugin] = set(hooks_of(plugin_class))
            for hook, function in hook_functions(plugin, sources[plugin], instance, hooks[plugin]).items():
                functions[plugin, hook] = function
        except BadPlugin:
            raise
        except BaseException as exc:  # a plugin's constructor, or a property, may raise anything, SystemExit too
            raise_interrupt(exc)
            problem = f"initializing failed: {describe_error(exc)}{place_in_plugin(exc)}"
            raise BadPlugin(plugin, sources[plugin], problem) from exc
        instances[plugin] = instance
    guards: dict[str, FailureGuard] = {}
    for plugin, instance in instances.items() if failure_guards is not None else ():
        assert failure_guards is not None
        declared = getattr(instance, "on_failure", None)
        guard = failure_guards.guard(plugin, sources[plugin], declared, hooks[plugin])
        if guard is not None:
            guards[plugin] = guard
            _guard_hooks(guard, sources[plugin], hooks[plugin], functions)
    depends_on = {
        plugin: _with_implied(instance.depends_on)
        for plugin, instance in instances.items()
        if getattr(instance, "depends_on", None) is not None and "sign" in hooks[plugin]
    }
    built_in = {plugin for plugin, one in instances.items() if is_built_in(type(one))}
    selected = {point: [ref.name for ref in refs] for point, refs in points.items()}

    def code(plugin: str, hook: str) -> CodeType | None:
        if plugin in built_in:
            return None
        function = inspect.unwrap(getattr(type(instances[plugin]), hook))
        return getattr(function, "__code__", None)

    def bound(plugin: str, hook: str) -> BoundHook | None:
        function = functions.get((plugin, hook))
        if function is None:
            return None
        guard = guards.get(plugin) if hook in ASYNC_HOOKS else None
        limit = getattr(instances[plugin], PRE_BIND_TIMEOUT, None) if hook == "pre_bind" else None
        return BoundHook(plugin, hook, function, sources[plugin], plugin in built_in, guard, code(plugin, hook), limit)

    def at_point(point: str, hook: str | None = None) -> tuple[BoundHook, ...]:
        found = (bound(plugin, hook or point) for plugin in selected.get(point, ()))
        return tuple(one for one in found if one is not None)

    def for_every_plugin(hook: str) -> tuple[BoundHook, ...]:
        found = (bound(plugin, hook) for plugin in names)
        return tuple(one for one in found if one is not None)

    def filter_hook(plugin: str) -> FilterHook:
        hook = "filter_node" if "filter_node" in hooks[plugin] else "filter"
        return FilterHook(
            plugin,
            hook,
            functions[plugin, hook],
            sources[plugin],
            plugin in built_in,
            code=code(plugin, hook),
            per_node=hook == "filter_node",
            depends_on=depends_on.get(plugin),
        )

    def score_hook(plugin: str, weight: int) -> ScoreHook:
        hook = "score_node" if "score_node" in hooks[plugin] else "score"
        return ScoreHook(
            plugin,
            hook,
            functions[plugin, hook],
            sources[plugin],
            plugin in built_in,
            code=code(plugin, hook),
            weight=weight or 1,
            normalize=bound(plugin, "normalize_score"),
            per_node=hook == "score_node",
            depends_on=depends_on.get(plugin),
        )

    def placement_score_hook(plugin: str, weight: int) -> ScoreHook:
        return ScoreHook(
            plugin,
            "placement_score",
            functions[plugin, "placement_score"],
            sources[plugin],
            plugin in built_in,
            weight=weight or 1,
            normalize=bound(plugin, "normalize_placement_score"),
        )

    of_groups = "pod_group_post_filter"
    rejector_plugins = {
        p for point in ("pre_enqueue", "pre_filter", "filter", "reserve", "permit") for p in selected.get(point, ())
    }
    return Profile(
        name=resolved.name,
        percentage_of_nodes_to_score=resolved.percentage_of_nodes_to_score,
        plugins=instances,
        pre_enqueue=at_point("pre_enqueue"),
        queue_sort=at_point("queue_sort"),
        pre_filter=at_point("pre_filter"),
        filter=tuple(filter_hook(plugin) for plugin in selected.get("filter", ())),
        post_filter=at_point("post_filter"),
        pre_score=at_point("pre_score"),
        score=tuple(score_hook(ref.name, ref.weight) for ref in points.get("score", ())),
        reserve=at_point("reserve"),
        unreserve=at_point("reserve", "unreserve")[::-1],
        permit=at_point("permit"),
        placement_generate=at_point("placement_generate"),
        placement_feasible=for_every_plugin("placement_feasible"),
        placement_score=tuple(placement_score_hook(ref.name, ref.weight) for ref in points.get("placement_score", ())),
        pod_group_post_filter=at_point(
            of_groups if of_groups in points else FORMER_POINT_OF_HOOK[of_groups], of_groups
        ),
        pre_bind_pre_flight=at_point("pre_bind", "pre_bind_pre_flight"),
        pre_bind=at_point("pre_bind"),
        bind=at_point("bind"),
        post_bind=at_point("post_bind"),
        events_to_register=for_every_plugin("events_to_register"),
        clauses={hook.plugin: hook for hook in for_every_plugin("clauses")},
        run=for_every_plugin("run"),
        add_pod={hook.plugin: hook for hook in at_point("pre_filter", "add_pod")},
        remove_pod={hook.plugin: hook for hook in at_point("pre_filter", "remove_pod")},
        sign={hook.plugin: hook for hook in for_every_plugin("sign") if hook.plugin in depends_on},
        depends_on=depends_on,
        rejector_plugins=frozenset(rejector_plugins),
        watches=frozenset(kind for instance in instances.values() for kind in getattr(instance, "watches", None) or ()),
        sources=sources,
    )


def _with_implied(declared: Iterable[Input | Domain]) -> frozenset[Input | Domain]:
    """What is *declared*; a node belongs to its domain, so with a `Domain` its object and its pods are."""
    has_domain = any(isinstance(one, Domain) for one in declared)
    return frozenset(declared) | ({Input.NODE, Input.PODS} if has_domain else frozenset())


def _guard_hooks(
    guard: FailureGuard, source: str, hooks: Collection[str], functions: dict[tuple[str, str], HookFunction]
) -> None:
    """Replace the functions of one plugin by those that answer for it when it fails."""
    for hook in hooks:
        function = functions[guard.plugin, hook]
        kind = FilterHook if hook == "filter" else BoundHook
        bound = kind(guard.plugin, hook, function, source)
        functions[guard.plugin, hook] = guarded(bound, guard, has_normalize="normalize_score" in hooks)
