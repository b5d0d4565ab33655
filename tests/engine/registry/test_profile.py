import functools
import re
from collections.abc import Hashable
from typing import Any, ClassVar

import pytest
from plugin_base import PluginBase

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.schema import PluginRef
from trio_sched.engine.hooks.plugin_errors import BadPlugin, PluginArgsError, UnknownPlugin
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.engine.registry.profile import Profile, build_profile
from trio_sched.plugin_api import (
    CycleState,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    NodeView,
    Pod,
    Status,
    hookimpl,
)
from trio_sched.testing import FakeHandle, make_profile, make_table, node, pod

LOG: list[tuple[Any, ...]] = []
CHOSEN: list[Any] = []


class First(PluginBase):
    """Names its arguments in another order, and not all of them."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.PODS})

    @hookimpl
    def filter(self, nodes: NodeColumns) -> str:
        return f"{len(nodes)} nodes"

    @hookimpl
    def score(self, state: CycleState, pod: Pod) -> str:
        return f"{pod.name} {state.get('x')}"

    @hookimpl
    def normalize_score(self, scores: Int64Array) -> Int64Array:
        return scores

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> None: ...

    @hookimpl
    def unreserve(self, pod: Pod) -> str:
        return "first gives back"

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.priority

    @hookimpl
    def add_pod(self, added: Pod) -> str:
        return f"{added.name} comes"

    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView) -> str:
        return f"{removed.name} leaves {node.name}"

    @hookimpl
    def pre_filter(self) -> str:
        return "prepared"


class Second(PluginBase):
    """Looks at nodes one by one; has a sign but does not say what it depends on."""

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> str:
        return "second gives back"

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.name

    @hookimpl
    async def run(self) -> None: ...

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return []


class Fussy:
    name: ClassVar[str] = "Fussy"

    def __init__(self, args: None, handle: Handle) -> None:
        raise OSError("no licence")

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> None: ...


REGISTRY = PluginRegistry.of([])
for plugin in (First, Second, Fussy):
    REGISTRY.add(plugin)


def build(arguments: dict[str, Any] | None = None, **points: list[str]) -> Profile:
    refs = {
        point: tuple(PluginRef(name, weight) for weight, name in enumerate(names)) for point, names in points.items()
    }
    resolved = ResolvedProfile(name="mine", points=refs, arguments=arguments or {})
    return build_profile(resolved, REGISTRY, FakeHandle(profile_name="mine").for_plugin)


def test_plugins_are_called_in_the_order_of_the_profile_at_each_point() -> None:
    forward = build(filter=["First", "Second"], score=["First"], reserve=["First", "Second"])
    assert [hook.plugin for hook in forward.filter] == ["First", "Second"]
    assert [hook.plugin for hook in build(filter=["Second", "First"]).filter] == ["Second", "First"]
    assert list(forward.plugins) == ["First", "Second"]


def test_unreserve_is_called_in_reverse_order_also_without_reserve() -> None:
    profile = build(reserve=["First", "Second"])
    assert [hook.plugin for hook in profile.reserve] == ["First"]
    given_back = [hook.function(pod("p"), "n", CycleState()) for hook in profile.unreserve]
    assert given_back == ["second gives back", "first gives back"]


def test_a_hook_gets_the_arguments_it_names_in_the_order_it_names_them() -> None:
    profile = build(pre_filter=["First"], filter=["First"], score=["First"])
    nodes, state = NodeColumns(make_table([node("a"), node("b")])), CycleState()
    state.write("x", 7)
    assert profile.filter[0].function(pod("p"), nodes, state) == "2 nodes"
    assert profile.score[0].function(pod("p"), nodes, state) == "p 7"
    assert profile.pre_filter[0].function(pod("p"), nodes, state) == "prepared"
    view = nodes.node(1)
    assert profile.add_pod["First"].function(pod("p"), pod("q"), view, state) == "q comes"
    assert profile.remove_pod["First"].function(pod("p"), pod("q"), view, state) == "q leaves b"


def test_what_a_hook_takes_is_seen_through_decorators_and_without_what_has_a_default() -> None:
    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return ("logged", function(*args))

        return call

    class Decorated(PluginBase):
        @hookimpl
        @logged
        def reserve(self, node_name: str, state: int = 3) -> str:
            return f"{node_name} {state}"

        @hookimpl
        @staticmethod
        def unreserve(node_name: str) -> str:
            return f"without {node_name}"

    profile = make_profile([Decorated])
    given = (pod("p"), "n", CycleState())
    assert profile.reserve[0].function(*given) == ("logged", "n 3")
    assert profile.unreserve[0].function(*given) == "without n"


def test_a_method_that_was_replaced_is_the_one_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replaced(PluginBase):
        @hookimpl
        def reserve(self, pod: Pod, node_name: str) -> str:
            return f"{pod.name} on {node_name}"

    given = (pod("p"), "n", CycleState())
    assert make_profile([Replaced]).reserve[0].function(*given) == "p on n"
    monkeypatch.setattr(Replaced, "reserve", hookimpl(lambda self, node_name: f"only {node_name}"))
    assert make_profile([Replaced]).reserve[0].function(*given) == "only n"


def test_a_function_that_an_instance_has_instead_of_its_class_is_called_and_its_arguments_are_checked() -> None:
    class Chosen(PluginBase):
        def __init__(self, args: None, handle: Handle) -> None:
            self.reserve = CHOSEN[0]

        @hookimpl
        def reserve(self, pod: Pod) -> None: ...

    CHOSEN[:] = [hookimpl(lambda node_name: f"chosen for {node_name}")]
    assert make_profile([Chosen]).reserve[0].function(pod("p"), "n", CycleState()) == "chosen for n"
    CHOSEN[:] = [hookimpl(lambda nodename: None)]
    with pytest.raises(BadPlugin, match=r"nodename.* are declared in the hookimpl but can not be found"):
        make_profile([Chosen])
    CHOSEN[:] = [lambda node_name: None]
    with pytest.raises(BadPlugin, match="hook 'reserve' is not marked with hookimpl where the instance has it"):
        make_profile([Chosen])


def test_a_plugin_runs_only_where_the_profile_enables_it() -> None:
    profile = build(filter=["First"])
    assert (profile.score, profile.reserve, profile.pre_filter) == ((), (), ())
    assert dict(profile.add_pod) == dict(profile.remove_pod) == {}


def test_a_weight_of_zero_is_one() -> None:
    assert [scorer.weight for scorer in build(score=["First"]).score] == [1]


def test_per_node_hooks_are_marked() -> None:
    profile = build(filter=["First", "Second"], score=["First"])
    assert [hook.per_node for hook in profile.filter] == [False, True]
    (scorer,) = profile.score
    assert (scorer.per_node, scorer.normalize is not None) == (False, True)


def test_background_tasks_and_events_belong_to_every_plugin_of_the_profile() -> None:
    profile = build(filter=["First", "Second"])
    assert [hook.plugin for hook in profile.run] == ["Second"]
    assert [hook.plugin for hook in profile.events_to_register] == ["Second"]


def test_rejecting_plugins_are_those_with_a_rejecting_hook() -> None:
    assert build(filter=["Second"], reserve=["First"]).rejector_plugins == {"First", "Second"}
    assert build(score=["First"]).rejector_plugins == frozenset()


def test_the_signature_cache_covers_plugins_with_sign_and_depends_on() -> None:
    profile = build(filter=["First", "Second"])
    assert profile.depends_on == {"First": {Input.PODS}}
    assert profile.signature(pod("p", priority=5)) == (5,)
    assert profile.cached_plugins((5,)) == {"First"}
    assert profile.cached_plugins((None,)) == frozenset()
    assert build(reserve=["First"]).signature(pod("p", priority=5)) == ()


def test_a_raising_constructor_is_a_plugin_error() -> None:
    with pytest.raises(
        BadPlugin, match=r"'Fussy' from class .*Fussy: initializing failed: OSError: no licence"
    ) as caught:
        build(pre_enqueue=["Fussy"])
    assert isinstance(caught.value.__cause__, OSError)
    assert re.search(r"no licence \(\w+\.py:\d+\)$", str(caught.value))


def test_missing_plugins_and_invalid_arguments_are_reported() -> None:
    with pytest.raises(UnknownPlugin):
        build(filter=["Third"])
    with pytest.raises(PluginArgsError):
        build({"First": {"unknown": 1}}, filter=["First"])


def test_the_handle_is_that_of_the_profile() -> None:
    assert build(filter=["First"]).plugins["First"].handle.profile_name == "mine"


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        (
            "watches",
            "Service",
            "its watches must be a tuple or set of names of kinds.* it is 'Service'",
        ),
        ("depends_on", "pods", "its depends_on must be a tuple or set of members of Input and Domain; it is 'pods'"),
    ],
)
def test_what_a_constructor_sets_is_checked_as_the_attributes_of_the_class_are(
    attribute: str, value: Any, problem: str
) -> None:
    class Setting(PluginBase):
        def __init__(self, args: None, handle: Handle) -> None:
            setattr(self, attribute, value)

        @hookimpl
        def reserve(self) -> None: ...

    with pytest.raises(BadPlugin, match=problem):
        make_profile([Setting])


def test_a_property_that_fails_is_named_with_its_plugin() -> None:
    class Failing(PluginBase):
        @property
        def watches(self) -> tuple[str, ...]:
            raise LookupError("lost")

        @hookimpl
        def reserve(self) -> None: ...

    with pytest.raises(BadPlugin, match=r"'Failing' from class .*: initializing failed: LookupError: lost"):
        make_profile([Failing])
