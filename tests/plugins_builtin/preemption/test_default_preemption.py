from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attrs import define, field
from msgspec.structs import replace

from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    DefaultPreemptionArgs,
    Diagnosis,
    DryRun,
    Hint,
    NodeStatuses,
    PostFilterResult,
    Resource,
    Status,
    Victims,
    failure,
    pending,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.preemption import best_candidates
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import FakeHandle, ask_hint, make_plugin, make_table, node, pod

PREEMPTION = "DefaultPreemption"
FULL = unschedulable("Insufficient cpu")
NEVER = unresolvable("node(s) had untolerated taint(s)")
WAITING = pod("waiting", priority=100)


@define(eq=False, kw_only=True)
class Asked(FakeHandle):
    """Notes what a dry run is asked, and lets an extender have a word."""

    tried: list[tuple[list[str], int]] = field(factory=list)
    extender: Any = None
    seen_by_extender: list[Mapping[str, Victims]] = field(factory=list)
    in_background: list[bool] = field(factory=list)

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], num_candidates: int) -> DryRun:
        self.tried.append((list(node_names), num_candidates))
        return self.dry_run

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        self.seen_by_extender.append(candidates)
        if isinstance(self.extender, Exception):
            raise self.extender
        return candidates if self.extender is None else self.extender  # type: ignore[no-any-return]

    async def preempt(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool, **loss: int
    ) -> Status | None:
        self.in_background.append(in_background)
        return await super().preempt(preemptor, victims, node_name, plugin, in_background=in_background, **loss)


def victim(name: str, priority: int = 0, start: str | None = "2026-01-01T00:00:00Z", **more: Any) -> Pod:
    made = pod(name, priority=priority, node_name="n", **more)
    return replace(made, status=replace(made.status, start_time=start))


def victims(*pods: Pod, violations: int = 0) -> Victims:
    return Victims(pods, violations)


def handle(*nodes: str, pods: Sequence[Pod] = (), waiting: Pod = WAITING, **more: Any) -> Asked:
    table = make_table([node(name) for name in nodes], pods)
    return Asked(nodes=NodeColumns(table), pending={waiting.key: waiting}, **more)


async def make_room(
    known: Asked,
    statuses: Mapping[str, Status],
    *,
    waiting: Pod = WAITING,
    absent: Status = NEVER,
    args: DefaultPreemptionArgs | None = None,
) -> PostFilterResult:
    plugin = make_plugin(PREEMPTION, args, known)
    result = await plugin.post_filter(waiting, Diagnosis(NodeStatuses.of(statuses, absent)), CycleState())
    assert isinstance(result, PostFilterResult)
    return result


LOW = victim("low")
ONE = DryRun({"a": victims(LOW)}, {})

# --- what comes of it -----------------------------------------------------------------------------------------------


async def test_the_victims_are_evicted_and_the_pod_is_nominated_to_their_node() -> None:
    known = handle("a", "b", dry_run=ONE)
    assert await make_room(known, {"a": FULL}) == PostFilterResult(None, "a")
    assert known.preempted == [(WAITING, (LOW,), "a")]


async def test_the_newest_version_of_the_pod_is_the_preemptor() -> None:
    newer = pod("waiting", priority=100, labels={"new": "label"})
    known = handle("a", waiting=newer, dry_run=ONE)
    await make_room(known, {"a": FULL})
    assert known.preempted[0][0] is newer


@pytest.mark.parametrize(("gate", "in_background"), [({}, True), ({"SchedulerAsyncPreemption": False}, False)])
async def test_evictions_run_in_the_background_unless_the_gate_is_off(
    gate: dict[str, bool], in_background: bool
) -> None:
    known = handle("a", dry_run=ONE, gates=gate)
    await make_room(known, {"a": FULL})
    assert known.in_background == [in_background]


async def test_a_deleted_pod_is_an_error() -> None:
    known = handle("a", dry_run=ONE)
    known.pending.clear()
    result = await make_room(known, {"a": FULL})
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, 'preemption: pod "waiting" not found')
    assert known.tried == []


async def test_a_failing_eviction_is_an_error_without_nomination() -> None:
    known = handle("a", dry_run=ONE, preempt_status=failure("the server is on fire"))
    result = await make_room(known, {"a": FULL})
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, "preemption: the server is on fire")
    assert result.nominated_node_name is None


async def test_without_nodes_there_is_nothing_to_preempt_on() -> None:
    result = await make_room(handle(), {})
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, "preemption: no nodes available")


async def test_without_candidates_the_nomination_is_cleared_and_all_nodes_have_a_status() -> None:
    tried = DryRun({}, {"a": unresolvable("No preemption victims found for incoming pod")})
    result = await make_room(handle("a", "b", "c", dry_run=tried), {"a": FULL})
    assert result == PostFilterResult(
        unschedulable(
            "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
            "2 Preemption is not helpful for scheduling."
        ),
        "",
    )


async def test_without_candidates_the_error_of_a_plugin_is_returned() -> None:
    result = await make_room(handle("a", dry_run=DryRun({}, {}, failure("broken"))), {"a": FULL})
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, "preemption: broken")
    assert result.nominated_node_name is None


async def test_with_candidates_the_error_of_a_plugin_is_ignored() -> None:
    tried = DryRun({"a": victims(LOW)}, {}, failure("broken"))
    assert await make_room(handle("a", dry_run=tried), {"a": FULL}) == PostFilterResult(None, "a")


# --- which nodes are tried ------------------------------------------------------------------------------------------


async def test_only_nodes_that_are_merely_unschedulable_are_tried() -> None:
    known = handle(*"abcde", dry_run=ONE)
    await make_room(known, {"a": FULL, "b": NEVER, "c": pending("soon"), "d": failure("oops")})
    assert known.tried == [(["a"], 1)]


async def test_if_a_pre_filter_rejected_the_pod_all_nodes_are_tried() -> None:
    known = handle("a", "b", dry_run=ONE)
    await make_room(known, {}, absent=unschedulable("pre_filter says no"))
    assert sorted(known.tried[0][0]) == ["a", "b"]


async def test_if_all_nodes_are_unresolvable_none_is_tried() -> None:
    known = handle("a", "b", dry_run=ONE)
    result = await make_room(known, {"a": NEVER})
    assert known.tried == []
    assert result.status is not None
    text = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    assert (result.status.message, result.nominated_node_name) == (text, "")


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "num_candidates"),
    [(50, 10, 100, 50), (500, 10, 100, 100), (2000, 10, 100, 200), (500, 0, 7, 7), (500, 3, 0, 15), (1, 10, 100, 1)],
)
async def test_the_number_of_candidates_follows_the_arguments(
    nodes: int, percentage: int, absolute: int, num_candidates: int
) -> None:
    names = [f"n{i}" for i in range(nodes)]
    known = handle(*names, dry_run=ONE)
    known.dry_run = DryRun({"n0": victims(LOW)}, {})
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)
    await make_room(known, dict.fromkeys(names, FULL), args=args)
    assert known.tried[0][1] == num_candidates


async def test_the_search_starts_at_a_random_node_and_wraps_around() -> None:
    names = [f"n{i}" for i in range(9)]
    known, starts = handle(*names, dry_run=DryRun({"n0": victims(LOW)}, {})), set()
    for _ in range(20):
        await make_room(known, dict.fromkeys(names, FULL))
        tried = known.tried[-1][0]
        first = names.index(tried[0])
        assert tried == names[first:] + names[:first]
        starts.add(first)
    assert len(starts) > 3


# --- who may preempt ------------------------------------------------------------------------------------------------


async def refusal(waiting: Pod, known: Asked, statuses: Mapping[str, Status] | None = None) -> str:
    result = await make_room(known, {"a": FULL} if statuses is None else statuses, waiting=waiting)
    if result.status is None:
        return ""
    assert result.status.code == Code.UNSCHEDULABLE
    assert result.nominated_node_name is None
    assert known.tried == known.preempted == []
    return result.status.message


async def test_a_pod_with_preemption_policy_never_does_not_preempt() -> None:
    polite = pod("waiting", priority=100, preemption_policy="Never")
    known = handle("a", waiting=polite, dry_run=ONE)
    assert await refusal(polite, known) == "preemption: not eligible due to preemptionPolicy=Never."


NOMINATED = pod("waiting", priority=100, nominated_node_name="a")
TERMINATING = "preemption: not eligible due to a terminating pod on the nominated node."


def leaving(*conditions: PodCondition, priority: int = 0, going: bool = True) -> Pod:
    made = pod("leaving", priority=priority, node_name="a")
    metadata = replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z" if going else None)
    return replace(made, metadata=metadata, status=replace(made.status, conditions=conditions or None))


def target(status: str = "True", reason: str = "PreemptionByScheduler") -> PodCondition:
    return PodCondition(type="DisruptionTarget", status=status, reason=reason)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (leaving(target()), TERMINATING),
        (leaving(PodCondition(type="Ready"), target()), TERMINATING),
        (leaving(target(), going=False), ""),
        (leaving(), ""),
        (leaving(target(reason="EvictionByEvictionAPI")), ""),
        (leaving(target(status="False")), ""),
        (leaving(target(reason="EvictionByEvictionAPI"), target()), ""),
        (leaving(target(), priority=100), ""),
    ],
    ids=["ours", "second", "stays", "unmarked", "other reason", "not true", "only the first counts", "important"],
)
async def test_a_pod_whose_victims_are_terminating_waits_for_them(other: Pod, text: str) -> None:
    assert await refusal(NOMINATED, handle("a", pods=[other], waiting=NOMINATED, dry_run=ONE)) == text


async def test_victims_on_other_nodes_do_not_matter() -> None:
    known = handle("a", "b", pods=[leaving(target())], dry_run=ONE)
    elsewhere = pod("waiting", priority=100, nominated_node_name="b")
    known.pending = {elsewhere.key: elsewhere}
    assert await refusal(elsewhere, known) == ""


async def test_if_the_nominated_node_is_unresolvable_the_pod_may_preempt_elsewhere() -> None:
    known = handle("a", "b", pods=[leaving(target())], waiting=NOMINATED, dry_run=DryRun({"b": victims(LOW)}, {}))
    assert await refusal(NOMINATED, known, {"a": NEVER, "b": FULL}) == ""


async def test_if_the_nominated_node_is_deleted_the_pod_may_preempt_elsewhere() -> None:
    gone = pod("waiting", priority=100, nominated_node_name="gone")
    known = handle("a", waiting=gone, dry_run=ONE, preempting_on={"gone"})
    assert await refusal(gone, known, {"a": FULL, "gone": FULL}) == ""


async def test_evicted_victims_count_as_terminating_before_the_watch_shows_it() -> None:
    known = handle("a", waiting=NOMINATED, dry_run=ONE, preempting_on={"a"})
    assert await refusal(NOMINATED, known) == TERMINATING


# --- extenders ------------------------------------------------------------------------------------------------------


async def test_a_candidate_is_chosen_among_those_left_by_extenders() -> None:
    other = victim("other", 50)
    known = handle("a", "b", dry_run=DryRun({"a": victims(LOW), "b": victims(other, LOW)}, {}))
    known.extender = {"b": victims(other)}
    assert await make_room(known, {"a": FULL, "b": FULL}) == PostFilterResult(None, "b")
    assert list(known.seen_by_extender[0]) == ["a", "b"]
    assert known.preempted == [(WAITING, (other,), "b")]


async def test_if_extenders_leave_no_candidate_none_is_chosen() -> None:
    result = await make_room(handle("a", dry_run=ONE, extender={}), {"a": FULL})
    assert result == PostFilterResult(unschedulable("preemption: no candidate node for preemption"), None)


async def test_a_failing_extender_ends_the_attempt() -> None:
    known = handle("a", dry_run=ONE, extender=RuntimeError("no answer"))
    result = await make_room(known, {"a": FULL})
    assert result.status is not None
    assert (result.status.code, result.status.message) == (Code.ERROR, "preemption: no answer")
    assert known.preempted == []


# --- which node is chosen -------------------------------------------------------------------------------------------

HIGH, LATE, UNKNOWN = victim("high", 9), victim("late", start="2026-06-01T00:00:00Z"), victim("unknown", start=None)
NEGATIVE, LEAST = victim("negative", -5), victim("least", -(2**31))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (victims(HIGH, HIGH), victims(LOW, violations=1)),
        (victims(LOW, LOW, LOW), victims(HIGH)),
        (victims(HIGH, LOW), victims(HIGH, HIGH)),
        (victims(HIGH), victims(HIGH, LOW)),
        (victims(NEGATIVE), victims(NEGATIVE, NEGATIVE)),
        (victims(HIGH), victims(HIGH, LEAST)),
        (victims(HIGH, victim("x", 4), victim("y", 4)), victims(HIGH, victim("x", 8), victim("y", 2))),
        (victims(LATE), victims(LOW)),
        (victims(UNKNOWN), victims(LATE)),
        (victims(LATE, LATE), victims(LATE, LOW)),
        (victims(victim("h", 9, "2026-02-01T00:00:00Z"), LOW), victims(HIGH, LATE)),
    ],
    ids=[
        "fewer violations before all else",
        "a less important most important victim",
        "a smaller sum of priorities",
        "one victim less makes the sum smaller",
        "negative priorities do not make more victims better",
        "fewer victims of the least possible priority",
        "the sum decides before what single ones are",
        "a victim that started later",
        "one that has not started counts as started now",
        "the earliest of the most important counts",
        "only the most important ones are looked at",
    ],
)
def test_the_better_candidate_is_chosen_in_any_order(better: Victims, worse: Victims) -> None:
    assert best_candidates({"one": worse, "other": better}) == ["other"]
    assert best_candidates({"other": better, "one": worse}) == ["other"]


def test_among_equals_all_are_left_in_the_order_they_came() -> None:
    assert best_candidates({"b": victims(LOW), "a": victims(LOW), "c": victims(HIGH)}) == ["b", "a"]


def test_a_tie_is_decided_by_the_next_rule() -> None:
    candidates = {
        "violating": victims(LATE, violations=1),
        "important": victims(HIGH),
        "many": victims(LOW, LOW),
        "old": victims(LOW),
        "young": victims(LATE),
    }
    assert best_candidates(candidates) == ["young"]


# --- gate and hints -------------------------------------------------------------------------------------------------


def test_a_pod_is_gated_while_its_victims_are_evicted() -> None:
    known = FakeHandle(preempting_for={WAITING.uid})
    status = make_plugin(PREEMPTION, None, known).pre_enqueue(WAITING)
    assert status == unresolvable("waiting for the preemption for this pod to be finished")
    assert make_plugin(PREEMPTION, None, known).pre_enqueue(pod("another")) is None
    known.gates["SchedulerAsyncPreemption"] = False
    assert make_plugin(PREEMPTION, None, known).pre_enqueue(WAITING) is None


@pytest.mark.parametrize(("is_on", "expected"), [(True, Hint.SKIP), (False, None)])
def test_deletions_are_registered_only_with_the_gate_and_their_hint_skips(is_on: bool, expected: Hint | None) -> None:
    known = FakeHandle(gates={"SchedulerAsyncPreemption": is_on})
    event = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
    assert ask_hint(PREEMPTION, event, WAITING, old=LOW, handle=known) is expected


async def test_since_1_37_the_message_of_the_pod_tells_of_the_preemption() -> None:
    known = handle("a", "b", dry_run=ONE, emulated_version=(1, 37))
    result = await make_room(known, {"a": FULL})
    assert result.nominated_node_name == "a"
    assert result.status is not None
    assert (result.status.code, result.status.message) == (
        Code.SUCCESS,
        "preemption: found a potential placement for pod on node a, preempting 1 victims",
    )
