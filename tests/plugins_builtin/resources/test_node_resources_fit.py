from typing import Any

import msgspec
import pytest

from trio_sched.objects.pod import Pod
from trio_sched.objects.resource.device_class import DeviceClass
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Hint,
    NodeColumns,
    NodeResourcesFitArgs,
    Placement,
    PlacementAssignments,
    PodGroupInfo,
    Resource,
    ScoringStrategy,
    UtilizationShapePoint,
)
from trio_sched.plugin_api.arguments import RequestedToCapacityRatio, ResourceSpec
from trio_sched.testing import FakeHandle, Outcome, ask_hint, container, make_plugin, make_table, node, pod, schedule

FIT = "NodeResourcesFit"
GPU = "example.com/gpu"
SHORT, HOPELESS = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def fit(pod: Pod, *, args: NodeResourcesFitArgs | None = None, handle: FakeHandle | None = None, **of: Any) -> Outcome:
    running = of.pop("running", ())
    nodes = of.pop("on", None) or [node("n", **of)]
    return schedule(pod, on=nodes, plugins=[FIT], pods=running, args={FIT: args} if args else None, handle=handle)


# --- filter ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "reasons", "code"),
    [
        ({"cpu": "1"}, None, None),
        ({"cpu": "1500m"}, ["Insufficient cpu"], SHORT),
        ({"cpu": "2001m"}, ["Insufficient cpu"], HOPELESS),
        ({"memory": "3Gi"}, None, None),
        ({"memory": "3.1Gi"}, ["Insufficient memory"], SHORT),
        (
            {"requests": {"ephemeral-storage": "1"}},
            ["Insufficient ephemeral-storage"],
            HOPELESS,
        ),
        ({"requests": {GPU: 1}}, ["Insufficient example.com/gpu"], SHORT),
        ({"requests": {GPU: 0}}, None, None),
        ({"requests": {"hugepages-2Mi": "2Mi"}}, ["Insufficient hugepages-2Mi"], HOPELESS),
        ({"requests": {"unknown": 5}}, None, None),
        (
            {"cpu": "9", "memory": "9Gi", "requests": {GPU: 9}},
            ["Insufficient cpu", "Insufficient memory", "Insufficient example.com/gpu"],
            HOPELESS,
        ),
        (
            {"cpu": "1500m", "memory": "9Gi"},
            ["Insufficient cpu", "Insufficient memory"],
            HOPELESS,
        ),
    ],
)
@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_every_resource_that_is_short_is_named(
    asked: dict[str, Any], reasons: list[str] | None, code: Code | None, further_nodes: int
) -> None:
    running = [pod("r", cpu="1", memory="1Gi", requests={GPU: 2}, node_name="n")]
    others = [node(f"m{i}", cpu="2") for i in range(further_nodes)]
    nodes = [node("n", cpu="2", memory="4Gi", allocatable={GPU: 2}), *others]
    outcome = fit(pod(**asked), on=nodes, running=running)
    assert outcome.reasons.get("n") == reasons
    assert (outcome.statuses["n"].code if reasons else None) == code


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_a_node_has_a_limit_of_pods(further_nodes: int) -> None:
    running = [pod("r", node_name="n")]
    nodes = [node("n", pods=1), *(node(f"m{i}") for i in range(further_nodes))]
    outcome = fit(pod(cpu="5"), on=nodes, running=running)
    assert outcome.reasons["n"] == ["Too many pods", "Insufficient cpu"]
    assert outcome.statuses["n"].code == HOPELESS
    assert fit(pod(), on=nodes, running=running).statuses["n"].code == SHORT


def test_extended_resources_can_be_ignored_by_name_or_by_group_but_others_cannot() -> None:
    by_name = NodeResourcesFitArgs(ignored_resources=(GPU, "hugepages-2Mi"))
    by_group = NodeResourcesFitArgs(ignored_resource_groups=("example.com",))
    asking = pod(requests={GPU: 5, "other.com/x": 1, "hugepages-2Mi": "2Mi"})
    assert fit(asking, args=by_name).reasons == {"n": ["Insufficient hugepages-2Mi", "Insufficient other.com/x"]}
    assert fit(pod(requests={GPU: 5}), args=by_group).node_name == "n"


def device_class(name: str, resource: str | None = None) -> DeviceClass:
    spec = {"extendedResourceName": resource} if resource else {}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


@pytest.mark.parametrize(
    ("resource", "known"),
    [(GPU, device_class("any", GPU)), ("deviceclass.resource.kubernetes.io/mine", device_class("mine"))],
)
def test_extended_resources_backed_by_a_device_class_are_left_to_dynamic_resources(
    resource: str, known: DeviceClass
) -> None:
    handle = FakeHandle(known_objects={"DeviceClass": [known]})
    has_some = node("has", allocatable={resource: 1})
    asking = pod(requests={resource: 2})
    outcome = fit(asking, on=[node("none"), has_some], handle=handle)
    assert outcome.feasible == ("none",)
    assert outcome.reasons == {"has": [f"Insufficient {resource}"]}
    many = [node(f"n{i}") for i in range(10)]
    assert len(fit(asking, on=[*many, has_some], handle=handle).feasible) == 10
    off = FakeHandle(known_objects={"DeviceClass": [known]}, gates={"DRAExtendedResource": False})
    assert fit(asking, on=[node("none")], handle=off).node_name is None
    assert make_plugin(FIT, handle=handle).sign(asking) is None
    assert make_plugin(FIT, handle=off).sign(asking) is not None


def test_pod_level_requests_count_where_their_gate_is_on() -> None:
    asking = msgspec.convert(
        {"metadata": {"name": "p"}, "spec": {"containers": [{}], "resources": {"requests": {"cpu": "5"}}}}, Pod
    )
    assert fit(asking).reasons == {"n": ["Insufficient cpu"]}
    assert fit(asking, handle=FakeHandle(gates={"PodLevelResources": False})).node_name == "n"


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_a_pod_may_request_any_number_of_resources(further_nodes: int) -> None:
    asked = {f"example.com/r{i}": 2 for i in range(100)}
    enough = node("enough", allocatable=asked)
    less = node("less", allocatable={**asked, "example.com/r98": 1, "example.com/r99": 0})
    used = node("used", allocatable=asked)
    others = [node(f"m{i}") for i in range(further_nodes)]
    running = [pod("r", requests={"example.com/r7": 1}, node_name="used")]
    found = schedule(pod(requests=asked), on=[less, used, *others], plugins=[FIT], pods=running)
    assert found.reasons["less"] == ["Insufficient example.com/r98", "Insufficient example.com/r99"]
    assert found.reasons["used"] == ["Insufficient example.com/r7"]
    if others:
        assert found.reasons["m0"] == [f"Insufficient {name}" for name in sorted(asked)]
    assert schedule(pod(requests=asked), on=[less, used, enough], plugins=[FIT], pods=running).node_name == "enough"


# --- score: the check vectors of the specification ------------------------------------------------------------------


def strategy(kind: str, *shape: tuple[int, int], weights: tuple[int, int] = (1, 1)) -> NodeResourcesFitArgs:
    points = tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in shape)
    return NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(
            type=kind,
            resources=(ResourceSpec(name="cpu", weight=weights[0]), ResourceSpec(name="memory", weight=weights[1])),
            requested_to_capacity_ratio=RequestedToCapacityRatio(shape=points) if shape else None,
        )
    )


FIRST = {"running": ("1500m", "4Gi"), "asked": ("500m", "1Gi"), "has": ("8", "32Gi")}
CROWDED = {"running": ("3900m", "10Gi"), "asked": ("200m", "1Gi"), "has": ("4", "16Gi")}
IDLE_CPU = {"running": ("0", "4Gi"), "asked": ("0", "1Gi"), "has": ("8", "32Gi")}


@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
@pytest.mark.parametrize(
    ("args", "case", "expected"),
    [
        (strategy("LeastAllocated"), FIRST, 79),
        (strategy("LeastAllocated", weights=(3, 1)), FIRST, 77),
        (strategy("MostAllocated"), FIRST, 20),
        (strategy("RequestedToCapacityRatio", (0, 0), (100, 10)), FIRST, 20),
        (strategy("RequestedToCapacityRatio", (0, 10), (70, 0)), FIRST, 72),
        (strategy("RequestedToCapacityRatio", (0, 0), (100, 10)), IDLE_CPU, 15),
        (strategy("RequestedToCapacityRatio", (20, 3), (40, 10)), IDLE_CPU, 30),
        (strategy("RequestedToCapacityRatio", (0, 10), (10, 4)), FIRST, 40),
    ],
)
def test_scores_are_those_of_the_specification(
    args: NodeResourcesFitArgs, case: dict[str, tuple[str, str]], expected: int, further_nodes: int
) -> None:
    cpu, memory = case["has"]
    used_cpu, used_memory = case["running"]
    asked_cpu, asked_memory = case["asked"]
    nodes = [node("n", cpu=cpu, memory=memory), *(node(f"m{i}", cpu="64") for i in range(further_nodes))]
    running = [pod("r", cpu=used_cpu, memory=used_memory, node_name="n")]
    outcome = fit(pod(cpu=asked_cpu, memory=asked_memory), on=nodes, running=running, args=args)
    assert outcome.raw_scores[FIT]["n"] == expected


@pytest.mark.parametrize(("kind", "expected"), [("LeastAllocated", 15), ("MostAllocated", 84)])
@pytest.mark.parametrize("further_nodes", [0, 20], ids=["few", "many"])
def test_a_node_that_is_over_committed_scores_as_if_it_were_full(kind: str, expected: int, further_nodes: int) -> None:
    # The node's pods ask for nothing, which filters count as nothing but scores as 100m each.
    idle = [pod(f"idle-{i}", cpu=None, memory="0", node_name="n") for i in range(39)]
    running = [*idle, pod("r", cpu="0", memory="10Gi", node_name="n")]
    nodes = [node("n", cpu="4", memory="16Gi"), *(node(f"m{i}") for i in range(further_nodes))]
    outcome = fit(pod(cpu="200m", memory="1Gi"), on=nodes, running=running, args=strategy(kind))
    assert outcome.raw_scores[FIT]["n"] == expected


def test_containers_that_ask_for_nothing_score_as_if_they_asked_for_a_little() -> None:
    outcome = fit(pod(containers=[container(), container()]), cpu="1", memory="1000Mi")
    assert outcome.raw_scores[FIT] == {"n": (80 + 60) // 2}


def test_a_scalar_resource_counts_only_for_pods_that_ask_for_it() -> None:
    args = NodeResourcesFitArgs(
        scoring_strategy=ScoringStrategy(resources=(ResourceSpec(name="cpu"), ResourceSpec(name=GPU, weight=3)))
    )
    nodes = [node("n", cpu="10", allocatable={GPU: 4}), node("m", cpu="10")]
    assert fit(pod(cpu="1"), on=nodes, args=args).raw_scores[FIT] == {"n": 90, "m": 90}
    assert fit(pod(cpu="1", requests={GPU: 1}), on=nodes, args=args).raw_scores[FIT] == {"n": (90 + 3 * 75) // 4}


def test_amounts_beyond_exact_floats_are_scored_in_integers() -> None:
    huge = 2**56
    outcome = fit(pod(cpu="1", memory=huge // 4), cpu="4", memory=huge + 3)
    assert outcome.raw_scores[FIT] == {"n": (75 + (huge + 3 - huge // 4) * 100 // (huge + 3)) // 2}


# --- what may free a pod --------------------------------------------------------------------------------------------

POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
SCALE_DOWN = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
ALLOCATABLE = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
CLASS_ADD = ClusterEvent(Resource.DEVICE_CLASS, Action.ADD)
CLASS_UPDATE = ClusterEvent(Resource.DEVICE_CLASS, Action.UPDATE)
WAITING = pod("waiting", cpu="1", requests={GPU: 1})


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (POD_DELETE, pod("r", node_name="n"), None, Hint.QUEUE),
        (POD_DELETE, pod("r", nominated_node_name="n"), None, Hint.QUEUE),
        (POD_DELETE, pod("r"), None, Hint.SKIP),
        (SCALE_DOWN, pod("r", cpu="2", node_name="n"), pod("r", cpu="1", node_name="n"), Hint.QUEUE),
        (SCALE_DOWN, pod("r", memory="2", node_name="n"), pod("r", memory="1", node_name="n"), Hint.SKIP),
        (SCALE_DOWN, pod("r", cpu="2"), pod("r", cpu="1"), Hint.SKIP),
        (SCALE_DOWN, pod("waiting", cpu="2"), WAITING, Hint.QUEUE),
        (NODE_ADD, None, node("n", cpu="1", allocatable={GPU: 1}), Hint.QUEUE),
        (NODE_ADD, None, node("n", cpu="1"), Hint.SKIP),
        (NODE_ADD, None, node("n", cpu="900m", allocatable={GPU: 1}), Hint.SKIP),
        (NODE_ADD, None, node("n", pods=0, allocatable={GPU: 1}), Hint.SKIP),
        (ALLOCATABLE, node("n", allocatable={GPU: 1}), node("n", allocatable={GPU: 2}), Hint.QUEUE),
        (ALLOCATABLE, node("n", allocatable={GPU: 2}), node("n", allocatable={GPU: 1}), Hint.SKIP),
        (ALLOCATABLE, node("n", pods=1, allocatable={GPU: 1}), node("n", pods=2, allocatable={GPU: 1}), Hint.QUEUE),
        (ALLOCATABLE, node("n", allocatable={GPU: 1}), node("n", memory="99Gi", allocatable={GPU: 1}), Hint.SKIP),
        (CLASS_ADD, None, device_class("any", GPU), Hint.QUEUE),
        (CLASS_ADD, None, device_class("any", "other.com/x"), Hint.SKIP),
        (CLASS_UPDATE, device_class("any", "other.com/x"), device_class("any", GPU), Hint.QUEUE),
        (CLASS_UPDATE, device_class("any", GPU), device_class("any", GPU), Hint.SKIP),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), node("n"), node("n"), None),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint | None) -> None:
    assert ask_hint(FIT, event, WAITING, old=old, new=new) is expected


def test_hints_for_device_classes() -> None:
    naming = pod(requests={"deviceclass.resource.kubernetes.io/mine": 1})
    assert ask_hint(FIT, CLASS_ADD, naming, new=device_class("mine")) is Hint.QUEUE
    off = FakeHandle(gates={"DRAExtendedResource": False})
    assert ask_hint(FIT, CLASS_ADD, naming, new=device_class("mine"), handle=off) is None


# --- signatures -----------------------------------------------------------------------------------------------------


def test_pods_that_ask_for_the_same_have_one_signature() -> None:
    sign = make_plugin(FIT).sign
    assert sign(pod("a", cpu="1", labels={"x": "y"})) == sign(pod("b", cpu="1"))
    assert sign(pod("a", cpu="1")) != sign(pod("a", cpu="2"))
    assert sign(pod("a", cpu="1")) != sign(pod("a", cpu="1", overhead={"cpu": "1"}))
    plain, sidecar = ([container(cpu="1", sidecar=sidecar)] for sidecar in (False, True))
    assert sign(pod(init_containers=plain)) != sign(pod(init_containers=sidecar))


@pytest.mark.parametrize("statuses", ["containerStatuses", "initContainerStatuses"])
def test_a_pod_with_a_resize_in_progress_has_a_signature_of_its_own(statuses: str) -> None:
    sign = make_plugin(FIT).sign
    resized = [
        msgspec.convert({"metadata": {"uid": uid}, "spec": {}, "status": {statuses: [{"name": "c"}]}}, Pod)
        for uid in ("1", "2")
    ]
    assert sign(resized[0]) != sign(resized[1])


def test_a_placement_is_scored_by_how_full_it_is_with_the_group() -> None:
    nodes = [node("a", cpu="4", memory="8Gi"), node("b", cpu="4", memory="8Gi"), node("other", cpu="100")]
    table = make_table(nodes, [pod("running", cpu="2", memory="4Gi", node_name="a")])
    placement = Placement("ab", frozenset({"a", "b"}))
    members = [pod("p", cpu="2", memory="2Gi"), pod("q")]  # the second counts with the defaults for scoring
    assigned = PlacementAssignments(
        placement, NodeColumns(table).take(slice(0, 2)), tuple((one, "b") for one in members)
    )
    group = PodGroupInfo("default", "g", tuple(members))
    score = make_plugin("NodeResourcesFit").placement_score(group, assigned, CycleState())
    assert score == ((2000 + 2000 + 100) * 100 // 8000 + (6 * 1024 + 200) * 100 // (16 * 1024)) // 2


def test_extended_resources_count_in_placements_only_if_the_group_requests_them() -> None:
    gpu = "example.com/gpu"
    strategy = ScoringStrategy(type="LeastAllocated", resources=(ResourceSpec(name=gpu, weight=1),))
    plugin = make_plugin("NodeResourcesFit", args=NodeResourcesFitArgs(scoring_strategy=strategy))
    nodes = NodeColumns(make_table([node("a", allocatable={gpu: 8}), node("b")]))
    for amount, score in ((0, 0), (2, 25)):
        one = pod("p", requests={gpu: amount})
        assigned = PlacementAssignments(Placement(), nodes, ((one, "a"),))
        assert plugin.placement_score(PodGroupInfo("default", "g", (one,)), assigned, CycleState()) == score
