from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
import pytest
import trio
from attrs import field, frozen

from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api import (
    Action,
    CustomResource,
    CycleState,
    EventRegistration,
    Handle,
    Input,
    Int64Array,
    NodeColumns,
    NodeView,
    Pod,
    Status,
    Verdicts,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import NotConforming, check_conformance, node, pod

REGISTRY = PluginRegistry.discover()


class Base:
    """What every plugin below has; each of them breaks one promise."""

    name: ClassVar[str] = "Broken"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass


def problems_of(plugin: type[Any], **more: Any) -> tuple[str, ...]:
    with pytest.raises(NotConforming) as caught:
        check_conformance(plugin, **more)
    assert "plugin 'Broken' breaks" in str(caught.value)
    return caught.value.problems


@pytest.mark.parametrize("name", REGISTRY.names)
def test_every_installed_plugin_keeps_its_promises(name: str) -> None:
    check_conformance(REGISTRY.load(name))


def test_a_class_that_is_no_plugin_is_named_with_what_is_wrong() -> None:
    class Broken(Base):
        @hookimpl
        def filtre(self, pod: Pod) -> None: ...

    (problem,) = problems_of(Broken)
    assert "there is no hook 'filtre'; did you mean 'filter'?" in problem


def test_a_filter_that_depends_on_which_nodes_it_is_shown_is_found() -> None:
    class Broken(Base):
        @hookimpl
        def filter(self, nodes: NodeColumns) -> Verdicts:
            return Verdicts.where(np.arange(len(nodes)) == 0, unschedulable("not the first"))

    problems = problems_of(Broken)
    assert "pod 'plain': filter says something else about 'node-7' when it is shown fewer nodes" in problems


def test_a_score_that_depends_on_which_nodes_it_is_shown_is_found() -> None:
    class Broken(Base):
        @hookimpl
        def score(self, nodes: NodeColumns) -> Int64Array:
            return np.full(len(nodes), len(nodes))

    problems = problems_of(Broken)
    assert "pod 'plain': score gives 'node-0' 4 when it is shown 4 nodes, 8 when it is shown all" in problems


def test_a_score_out_of_range_is_found() -> None:
    class Broken(Base):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 101

    assert "it should in the range of [0, 100] after normalizing" in problems_of(Broken)[0]


def test_writing_to_the_columns_is_found() -> None:
    class Broken(Base):
        @hookimpl
        def filter(self, nodes: NodeColumns) -> Verdicts:
            column = nodes.pod_count
            column.flags.writeable = True
            column[0] += 1
            return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())

    assert problems_of(Broken)[0] == (
        "pod 'plain': filter wrote to the columns pod_count, which belong to everybody: work on a copy"
    )


def test_a_signature_that_hides_a_difference_is_found() -> None:
    class Broken(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
            return unschedulable("important pods only") if not pod.priority else None

        @hookimpl
        def sign(self, pod: Pod) -> Hashable:
            return "all the same"

    assert "pods 'plain' and 'big' have one signature but get different results" in problems_of(Broken)


def test_a_signature_that_is_not_hashable_is_found() -> None:
    class Broken(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
            return None

        @hookimpl
        def sign(self, pod: Pod) -> Any:
            return list(pod.labels)

    assert problems_of(Broken)[0] == (
        "pod 'plain': running plugin \"Broken\": sign returned list, which is not hashable; "
        "return a hashable value, or None"
    )


def test_a_dependency_on_running_pods_that_was_not_declared_is_found() -> None:
    class Broken(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return len(node.pods)

        @hookimpl
        def sign(self, pod: Pod) -> Hashable:
            return ()

    assert problems_of(Broken)[0].endswith("results change with the pods on a node: depends_on needs Input.PODS")


@pytest.mark.parametrize(
    ("looks_at", "problem"),
    [
        (lambda node: len(node.pods), None),
        (lambda node: sum("app" in pod.labels for pod in node.pods), "alone: depends_on needs Input.PODS"),
        (lambda node: len(node.labels), "alone: depends_on needs Input.NODE"),
    ],
)
def test_a_dependency_on_more_than_amounts_is_found(looks_at: Callable[[NodeView], int], problem: str | None) -> None:
    class Tested(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.AMOUNTS})

        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return looks_at(node)

        @hookimpl
        def sign(self, pod: Pod) -> Hashable:
            return ()

    if problem is None:
        check_conformance(Tested)
    else:
        assert problems_of(Tested)[0].endswith(problem)


def test_a_dependency_on_other_nodes_that_was_not_declared_is_found() -> None:
    class Broken(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

        @hookimpl
        def pre_score(self, nodes: NodeColumns, state: CycleState) -> None:
            state.write("Broken", nodes.total_nodes)

        @hookimpl
        def score(self, nodes: NodeColumns, state: CycleState) -> Int64Array:
            return np.full(len(nodes), state.read("Broken"))

        @hookimpl
        def sign(self, pod: Pod) -> Hashable:
            return ()

    assert "results about 'node-0' change with other nodes: depends_on needs Input.ALL_NODES" in problems_of(Broken)[0]


def test_a_normalisation_that_counts_how_often_scores_occur_is_found() -> None:
    class Broken(Base):
        depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.PODS})

        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return len(node.pods)

        @hookimpl
        def normalize_score(self, scores: Int64Array) -> Int64Array:
            return scores * 100 // max(1, int(scores.sum()))

        @hookimpl
        def sign(self, pod: Pod) -> Hashable:
            return ()

    assert "normalize_score looks at how often a score occurs" in problems_of(Broken)[0]


def test_a_plugin_that_fails_is_named_with_its_error() -> None:
    class Broken(Base):
        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            raise LookupError("no licence server")

    assert (
        problems_of(Broken)[0]
        == "pod 'plain': running \"Broken\" filter plugin: filter_node raised LookupError: no licence server"
    )


def test_registrations_must_be_registrations() -> None:
    class Broken(Base):
        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            return None

        @hookimpl
        def events_to_register(self) -> Iterable[Any]:
            return ["Node/Add"]

    (problem,) = problems_of(Broken)
    assert "events_to_register returned str among its registrations" in problem
    assert problem.endswith("return a list of on(resource, action, hint)")


def test_events_of_a_plugin_that_turns_nobody_away_are_never_asked_for() -> None:
    class Broken(Base):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

        @hookimpl
        def events_to_register(self) -> Iterable[EventRegistration]:
            return []

    assert problems_of(Broken) == ("events_to_register is never asked for: it has no hook that can turn a pod away",)


def test_arguments_that_need_something_the_file_does_not_say_are_found() -> None:
    @frozen(kw_only=True)
    class Args:
        seats: int

    class Broken(Base):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

    Broken.Args = Args  # type: ignore[attr-defined]
    assert "args.seats: required field missing" in problems_of(Broken)[0]
    check_conformance(Broken, args={"seats": 3})


def test_pods_nodes_and_running_pods_may_be_the_authors_own() -> None:
    class Broken(Base):
        @hookimpl
        def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
            if pod.name == "odd":
                raise LookupError("odd")
            return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())

    check_conformance(Broken)
    check_conformance(Broken, pods=[pod("even")], nodes=[node("n")], running=[])
    (problem,) = problems_of(Broken, pods=[pod("odd")], nodes=[node("n")], running=[pod("r", node_name="n")])
    assert problem.endswith("filter plugin: filter raised LookupError: odd")


def test_arguments_that_nest_can_be_written_and_read() -> None:
    @frozen(kw_only=True, eq=False)
    class Rule:
        max_per_zone: int = 3
        zones: frozenset[str] = frozenset({"a"})
        number_of_uses: int = field(default=0, init=False)

    @frozen(kw_only=True)
    class Args:
        rules: tuple[Rule, ...] = (Rule(),)
        first_rule: Rule | None = Rule()
        by_zone_name: dict[str, Rule] = field(factory=lambda: {"zone_a": Rule(max_per_zone=1)})
        limits_of_rules: dict[str, int] = field(factory=lambda: {"some_key": 1})

    class Nested(Base):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

    Nested.Args = Args  # type: ignore[attr-defined]
    check_conformance(Nested)
    check_conformance(Nested, args={"byZoneName": {"zone_b": {"maxPerZone": 2}}})
    check_conformance(Nested, args=Args(first_rule=None))


def test_there_may_be_no_nodes_and_no_pods() -> None:
    class Filtering(Base):
        @hookimpl
        def filter(self, pod: Pod, nodes: NodeColumns) -> Verdicts:
            return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())

        @hookimpl
        def score(self, nodes: NodeColumns) -> Int64Array:
            return np.zeros(len(nodes), dtype=np.int64)

    check_conformance(Filtering, nodes=[])
    check_conformance(Filtering, pods=[])


def test_a_class_wins_over_an_installed_plugin_of_the_same_name() -> None:
    class Mine(Base):
        name: ClassVar[str] = "NodeName"

        @hookimpl
        def reserve(self) -> None: ...

    check_conformance(Mine)


@pytest.mark.parametrize("is_inside_trio", [False, True])
def test_async_hooks_may_wait(is_inside_trio: bool) -> None:
    class Waiting(Base):
        @hookimpl
        async def post_filter(self) -> bool:
            await trio.sleep(50)
            return await trio.to_thread.run_sync(bool, 1)

        @hookimpl
        async def pre_bind(self) -> int:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 5)
            return 1

        @hookimpl
        async def bind(self) -> None:
            await trio.sleep_forever()

        @hookimpl
        async def post_bind(self) -> None:
            await trio.sleep(1)
            raise LookupError("lost")

    async def check() -> tuple[str, ...]:
        return problems_of(Waiting, pods=[pod("p")])

    found = trio.run(check) if is_inside_trio else problems_of(Waiting, pods=[pod("p")])
    assert ["post_filter returned bool" in found[0], "pre_bind returned int" in found[1]] == [True, True]
    assert "post_bind raised LookupError: lost" in found[2]


@pytest.mark.parametrize("hook", ["permit", "reserve", "unreserve", "pre_bind", "post_bind", "bind", "queue_sort"])
def test_a_plugin_may_take_part_in_one_thing_only(hook: str) -> None:
    def answer(self: Any) -> Any:
        return (1,) if hook == "queue_sort" else None

    def fail(self: Any) -> None:
        raise LookupError("lost")

    members = {"name": "Broken", "__init__": Base.__init__}
    answer.__name__ = fail.__name__ = hook
    check_conformance(type("Broken", (), {**members, hook: hookimpl(answer)}))
    assert f"{hook} raised LookupError: lost" in problems_of(type("Broken", (), {**members, hook: hookimpl(fail)}))[0]


def test_a_plugin_that_only_works_in_the_background_is_checked_too() -> None:
    class Broken(Base):
        def __init__(self, args: Any, handle: Handle) -> None:
            raise LookupError("lost")

        @hookimpl
        async def run(self) -> None: ...

    assert "initializing failed: LookupError: lost" in problems_of(Broken)[0]


class Fetching(Base):
    """Answers by data that only ``run`` has."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.data: dict[str, float] = {}

    @hookimpl
    async def run(self) -> None:
        raise AssertionError("is not called")

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Any:
        return np.array([self.data.get(name, 0) for name in nodes.names])


def test_what_run_fetches_is_given_by_the_test() -> None:
    check_conformance(Fetching)
    prepared: list[Any] = []

    def prepare(plugin: Fetching) -> None:
        prepared.append(plugin)
        plugin.data = {"a": 0.5}

    (problem, *_) = problems_of(Fetching, nodes=[node("a"), node("b")], prepare=prepare)
    assert "score returned an array of dtype float64" in problem
    assert len(set(map(id, prepared))) > 1


def test_a_forgotten_mark_is_found() -> None:
    class Broken(Base):
        @hookimpl
        def reserve(self) -> None: ...

        def filter_node(self, node: NodeView) -> None: ...

    assert problems_of(Broken)[0].startswith("Broken.filter_node has the name of a hook, but is not marked")


@pytest.mark.parametrize("kind", ["ConfigMap", "deployments.v1.apps", CustomResource("batch", "v1", "CronJob")])
def test_objects_can_be_given_as_dicts(kind: Any) -> None:
    class Reads(Base):
        name = "Reads"
        watches: ClassVar = (kind,)

        @hookimpl
        def filter(self, nodes: NodeColumns) -> Verdicts:
            count = sum(one.metadata.labels is None for one in self.handle.objects(kind))
            return Verdicts.where(np.full(len(nodes), count == 0), unschedulable("there is one"))

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(kind, Action.ALL)]

        def __init__(self, args: Any, handle: Handle) -> None:
            self.handle = handle

    examples = [{"metadata": {"name": "c", "namespace": "default"}, "spec": {"replicas": 1}}]
    check_conformance(Reads, pods=[pod("p")], objects={kind: examples})
    with pytest.raises(TypeError, match=r"objects\['?.*'?\]: .*no object of this kind: .*metadata"):
        check_conformance(Reads, pods=[pod("p")], objects={kind: [{"metadata": 3}]})
