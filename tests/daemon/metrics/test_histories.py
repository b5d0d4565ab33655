"""What is counted over whole histories of a cluster, as a scrape shows it."""

from typing import Any

import pytest
import trio
from gangs import cluster_of, member
from plugin_base import PluginBase
from scraped import metrics_of, rendered, scrape_of
from trio.testing import MockClock

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.metrics.series.collection import FAMILIES, Collection
from trio_sched.daemon.serving.messages import Request, Response
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.plugin_api import CycleState, Pod, Status, Wait, hookimpl, unschedulable
from trio_sched.simulator import KubeletPace, PretendExtender
from trio_sched.testing import disruption_budget, node, pod, pod_group
from trio_sched.testing.cluster import virtual_cluster

PODS = 25
CYCLE = (
    "PreFilter",
    "Filter",
    "PreScore",
    "Score",
    "Reserve",
    "Permit",
    "PreBindPreFlight",
    "PreBind",
    "Bind",
    "PostBind",
)


async def test_counts_at_every_extension_point_are_the_attempts(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3) as cluster:
        for number in range(PODS):
            await cluster.create(pod(f"p{number}", cpu="10m"))
        await cluster.settle()
        seen = await scrape_of(cluster)
    assert seen.by("result", "scheduler_schedule_attempts_total") == {"scheduled": PODS}
    assert seen("scheduler_scheduling_attempt_duration_seconds_count", result="scheduled") == PODS
    assert seen("scheduler_scheduling_algorithm_duration_seconds_count") == PODS
    counts = seen.by("extension_point", "scheduler_framework_extension_point_duration_seconds_count")
    assert counts == {**dict.fromkeys(CYCLE, PODS), "PreEnqueue": PODS}
    assert seen("scheduler_plugin_evaluation_total", plugin="NodeResourcesFit", extension_point="Filter") == PODS
    assert seen("scheduler_plugin_evaluation_total", plugin="NodeResourcesFit", extension_point="Score") == PODS
    assert seen("scheduler_plugin_evaluation_total", plugin="NodePorts", extension_point="Filter") == 0  # it is skipped
    assert seen("scheduler_plugin_evaluation_total", plugin="NodePorts", extension_point="PreFilter") == PODS
    assert seen("trio_sched_signature_cache_decisions_total", result="hit") == PODS
    assert seen("trio_sched_signature_cache_entries") == 1
    assert seen("scheduler_store_schedule_results_duration_seconds_count") == 1


async def test_results_that_are_dropped_from_the_signature_cache_are_counted_by_reason(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=3) as cluster:
        await cluster.create(pod("p", cpu="10m"))
        await cluster.settle()
        cluster.scheduler.assembly.scheduler.invalidate_signatures()
        seen = await scrape_of(cluster)
    assert seen.by("reason", "scheduler_batch_cache_flushed_total") == {"expired": 1}


async def test_plugins_are_timed_in_a_tenth_of_the_cycles(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3) as cluster:
        for number in range(200):
            await cluster.create(pod(f"p{number}", cpu="10m"))
        await cluster.settle()
        seen = await scrape_of(cluster)
        replaced = [
            hook for hook in cluster.scheduler.assembly.loaded.prepared.hooks if "_timed" in hook.function.__qualname__
        ]
    sampled = seen("scheduler_plugin_execution_duration_seconds_count", extension_point="Bind", plugin="DefaultBinder")
    assert sampled is not None
    assert 10 <= sampled <= 40
    assert (
        seen("scheduler_plugin_execution_duration_seconds_count", extension_point="Reserve", plugin="VolumeBinding")
        == sampled
    )
    assert seen("trio_sched_plugin_sampled_calls_total", hook="bind", plugin="DefaultBinder") == sampled
    assert replaced == []


async def test_durations_are_in_the_time_of_the_cluster(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, bind_latency_seconds=2.0) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        seen = await scrape_of(cluster)
    assert seen("scheduler_scheduling_attempt_duration_seconds_sum") == pytest.approx(2.0, abs=0.01)
    assert seen("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="1") == pytest.approx(2.0, abs=0.01)
    points = "scheduler_framework_extension_point_duration_seconds_sum"
    assert seen(points, extension_point="Bind") == pytest.approx(2.0, abs=0.01)
    requests = "rest_client_request_duration_seconds"
    assert seen("workqueue_work_duration_seconds_sum", name="binding") == pytest.approx(2.0, abs=0.01)
    assert seen("workqueue_queue_duration_seconds_sum", name="binding") == pytest.approx(0.0, abs=0.01)
    assert seen("workqueue_retries_total", name="binding") == 0
    assert seen(f"{requests}_sum", verb="POST") == pytest.approx(2.0, abs=0.01)
    assert seen(f"{requests}_bucket", verb="POST", le="1") == seen(f"{requests}_count", verb="POST") - 1  # type: ignore[operator]


async def test_a_pod_that_waits_for_a_node_is_pending_and_tells_by_what_it_was_freed(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=[node("small", cpu=1)]) as cluster:
        await cluster.create(pod("p", cpu=2))
        await cluster.create(pod("gated", gates=["test/wait"]))
        await trio.sleep(5)
        before = await scrape_of(cluster)
        await cluster.create(node("large", cpu=4))
        await cluster.settle()
        after = await scrape_of(cluster)
    assert before.by("queue", "scheduler_pending_pods") == {"unschedulable": 1, "gated": 1}
    unschedulable_pods = before.by("plugin", "scheduler_unschedulable_pods")
    assert unschedulable_pods == {"NodeResourcesFit": 1, "SchedulingGates": 1}
    assert before.by("result", "scheduler_schedule_attempts_total") == {"unschedulable": 1}
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert before(points, extension_point="PostFilter", status="Unschedulable") == 1
    assert before(points, extension_point="PreEnqueue", status="UnschedulableAndUnresolvable") == 1
    assert after.by("queue", "scheduler_pending_pods") == {"gated": 1}
    assert after.by("plugin", "scheduler_unschedulable_pods") == {"SchedulingGates": 1}
    incoming = "scheduler_queue_incoming_pods_total"
    assert after.by("event", incoming, queue="active") == {"UnschedulablePodAdd": 1, "NodeAdd": 1}
    assert after.by("event", incoming, queue="unschedulable") == {"ScheduleAttemptFailure": 1, "UnschedulablePodAdd": 1}
    hints = "scheduler_queueing_hint_execution_duration_seconds_count"
    assert after(hints, event="NodeAdd", hint="Queue", plugin="NodeResourcesFit") == 1
    assert after("scheduler_pod_scheduling_attempts_sum") == 2
    assert after("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="2") == 1
    assert after("scheduler_cache_size", type="nodes") == 2
    assert after("scheduler_cache_size", type="pods") == 1
    assert after("scheduler_cache_size", type="assumed_pods") == 0
    handled = after.by("event", "scheduler_event_handling_duration_seconds_count")
    assert handled["NodeAdd"] == 2
    assert handled["UnschedulablePodAdd"] == 2
    assert handled["AssignedPodAdd"] == 1


async def test_preemptions_are_counted_with_their_victims_and_measured_to_their_end(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=4)], kubelets=KubeletPace(stop_seconds=3.0)) as cluster:
        for name in ("a", "b"):
            await cluster.create(pod(name, cpu=2, priority=0))
        await cluster.settle()
        cluster.api.faults.set_latency(1.5, verb="delete", resource="pods")
        await cluster.create(pod("high", cpu=4, priority=100))
        await cluster.settle()
        assert cluster.pod("high").node_name == "n"
        seen = await scrape_of(cluster)
    assert seen("scheduler_preemption_attempts_total") == seen(
        "scheduler_framework_extension_point_duration_seconds_count", extension_point="PostFilter"
    )
    assert seen("scheduler_preemption_victims_sum") == 2
    assert seen("scheduler_preemption_victims_count") == 1
    assert seen("scheduler_preemption_goroutines_execution_total", result="success") == 1
    # One after the other: the last victim is deleted only once all others are.
    assert seen("scheduler_preemption_goroutines_duration_seconds_sum") == pytest.approx(3.0, abs=0.1)
    assert seen("rest_client_requests_total", method="DELETE", code="200") == 2
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert seen(points, extension_point="PostFilter", status="Success") == 1


class Waits(PluginBase):
    name = "Waits"

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Wait:
        return Wait(timeout_seconds=30.0)


async def test_a_pod_that_waits_on_permit_in_vain_shows_how_long(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Waits]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(10)
        waiting = await scrape_of(cluster)
        await trio.sleep(20.5)
        over = await scrape_of(cluster)
    assert waiting("scheduler_permit_wait_duration_seconds_count") is None
    assert waiting("scheduler_cache_size", type="assumed_pods") == 1
    assert waiting("scheduler_goroutines", operation="binding") == 1
    assert waiting("scheduler_inflight_events", event="PodPopped") == 1
    assert over("scheduler_permit_wait_duration_seconds_sum", result="Unschedulable") == pytest.approx(30.0, abs=0.1)
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert over(points, extension_point="Permit", status="Wait") == 2  # nothing else is to be done: it is tried again
    assert over(points, extension_point="Unreserve", status="Success") == 1
    assert over("scheduler_schedule_attempts_total", result="unschedulable") == 1


class Moody(PluginBase):
    """Rejects every pod for ten seconds, waits for no event, and raises for pods of that name."""

    name = "Moody"

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        if pod.name == "raises":
            raise ValueError("in a bad mood")
        return unschedulable("not in the mood") if trio.current_time() < 10 else None

    @hookimpl
    def events_to_register(self) -> list[Any]:
        return []


async def test_a_pod_that_only_the_flush_has_rescued_is_counted(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Moody]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle(quiet_seconds=400)
        assert cluster.pod("p").node_name
        seen = await scrape_of(cluster)
    assert seen("scheduler_pod_scheduled_after_flush_total") == 1
    assert seen("trio_sched_pods_flushed_total") == 1
    assert seen("scheduler_queue_incoming_pods_total", event="UnschedulableTimeout") == 1
    sli = seen("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="2")
    assert sli is not None
    assert 300 <= sli <= 331


async def test_the_failures_of_a_plugin_are_counted_under_its_name(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Moody]) as cluster:
        await cluster.create(pod("raises"))
        await trio.sleep(4)
        seen = await scrape_of(cluster)
    attempts = seen("scheduler_schedule_attempts_total", result="error")
    assert attempts is not None
    assert attempts >= 2
    assert seen("trio_sched_plugin_failures_total", plugin="Moody", hook="pre_filter") == attempts
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert seen(points, extension_point="PreFilter", status="Error") == attempts


async def resources_of(assembly: Assembly) -> Response:
    path = "/metrics/resources"
    routes = build_routes(ServingSettings(), assembly, Liveness(assembly))
    return await routes(Request(method="GET", path=path, target=path))


async def test_the_leader_says_so_and_a_follower_shows_no_pods(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, leader_elect=True) as cluster:
        first = cluster.scheduler
        await cluster.create(pod("p", cpu="100m"))
        await cluster.settle()
        await cluster.start_scheduler()
        await trio.sleep(5)
        leading, following = first.assembly, cluster.scheduler.assembly
        assert leading is not None
        assert following is not None
        for assembly, leads in ((leading, 1), (following, 0)):
            _content_type, body = await rendered(assembly.metrics.pages.metrics, "")
            assert f'leader_election_master_status{{name="kube-scheduler"}} {leads}\n'.encode() in body
        of_leader, of_standby = await resources_of(leading), await resources_of(following)
        assert b'pod="p"' in of_leader.body
        assert (of_standby.status, of_standby.headers, of_standby.body) == (200, [], b"")
        await first.stop()
        await trio.sleep(5)
        of_standby = await resources_of(following)
    assert dict(of_standby.headers)["content-type"].startswith("text/plain; version=0.0.4")
    assert b'pod="p"' in of_standby.body


async def test_watches_and_requests_are_counted_by_what_they_were(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await trio.sleep(3)
        await cluster.create(pod("p"))
        await trio.sleep(700)
        seen = await scrape_of(cluster)
    assert seen("trio_sched_watch_lists_total", resource="pods") == 1
    restarts = seen("trio_sched_watch_restarts_total", resource="pods")
    assert restarts is not None
    assert 1 <= restarts <= 3  # the server ends each after 5 to 10 minutes
    assert seen("trio_sched_watch_connected", resource="nodes") == 1
    silence = seen("trio_sched_watch_silence_seconds", resource="nodes")
    assert silence is not None
    assert 0 <= silence <= 62
    assert seen("rest_client_requests_total", method="POST", code="201", host="virtual.test") == 2  # bind and event
    assert seen("rest_client_rate_limiter_duration_seconds_count", verb="POST") == 2


async def test_a_daemon_shows_only_families_that_are_documented(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        shown = [one for one in Collection(metrics_of(cluster)).collect() if one.series]
    names = [one.family.name for one in shown]
    assert names == sorted(names)
    for one in shown:
        assert FAMILIES[one.family.name] == one.family
        assert all(len(values) == len(one.family.labels) for values, _value in one.series), one.family.name
        assert [values for values, _ in one.series] == sorted({values for values, _ in one.series})
    unlabelled = {name for name, family in FAMILIES.items() if not family.labels and not family.gates}
    assert unlabelled - {one.family.name for one in shown if one.series} <= {
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "trio_sched_shard_fenced_pods_total",  # of replicas that share the work
        "trio_sched_shard_refusals_total",
    }


EXTENDED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "http://extender.test", filterVerb: filter, nodeCacheCapable: true}
"""


async def test_an_attempt_with_extenders_is_one_attempt_and_lasts_as_long_as_they_take(
    autojump_clock: MockClock,
) -> None:
    answers = {"filter": lambda asked: {"NodeNames": asked.request["NodeNames"]}}
    extender = PretendExtender(answers=answers, delay_seconds=2.0)
    async with virtual_cluster(nodes=2, config=EXTENDED, extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        seen = await scrape_of(cluster)
    assert len(extender.asked) == 1
    counts = seen.by("extension_point", "scheduler_framework_extension_point_duration_seconds_count")
    assert counts == {**dict.fromkeys(CYCLE, 1), "PreEnqueue": 1}
    assert seen("scheduler_plugin_evaluation_total", plugin="NodeResourcesFit", extension_point="Filter") == 1
    assert seen("scheduler_scheduling_algorithm_duration_seconds_sum") == pytest.approx(2.0, abs=0.1)
    assert seen("scheduler_scheduling_attempt_duration_seconds_sum") == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_new_pods_have_the_names_of_the_emulated_version(autojump_clock: MockClock, version: str) -> None:
    async with virtual_cluster(nodes=2, emulated_version=version) as cluster:
        gated = pod("gated", gates=["wait"])
        await cluster.create(gated)
        await cluster.create(pod("p"))
        await cluster.settle()
        seen = await scrape_of(cluster)
        await cluster.patch(gated, {"spec": {"schedulingGates": None}})
        await cluster.settle()
        after = await scrape_of(cluster)
    is_new = version == "1.37"
    of_pod, other = ("TargetPod", "UnscheduledPod") if is_new else ("UnschedulablePod", "UnschedulablePod")
    gone = f"{of_pod}UpdatePodSchedulingGatesEliminated"
    assert after("scheduler_queue_incoming_pods_total", event=gone, queue="active") == 1
    assert after("scheduler_event_handling_duration_seconds_count", event=f"{other}Update") is not None
    added = "UnscheduledPodAdd" if is_new else "UnschedulablePodAdd"
    assert seen("scheduler_queue_incoming_pods_total", event=added, queue="active") == 1
    assert seen("scheduler_event_handling_duration_seconds_count", event=added) == 2
    entities = "scheduler_queue_incoming_entities_total"
    assert seen(entities, event=added, queue="active", type="pod") == (1 if is_new else None)
    assert seen("scheduler_queued_entities", queue="gated", type="pod") == (1 if is_new else None)
    assert seen("kubernetes_feature_enabled", name="StorageCapacityScoring") == is_new
    evaluated = seen("scheduler_plugin_evaluation_total", plugin="VolumeBinding", extension_point="Score")
    assert bool(evaluated) == is_new


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_equal_pods_that_share_a_node_are_rescored_where_the_version_has_metrics_of_it(
    autojump_clock: MockClock, version: str
) -> None:
    nodes = [node(name, cpu=8) for name in ("n1", "n2")]
    async with virtual_cluster(nodes=nodes, emulated_version=version) as cluster:
        for number in range(4):
            await cluster.create(pod(f"p{number}", cpu=1))
        await cluster.settle()
        seen = await scrape_of(cluster)
        placed = sorted(cluster.pod(f"p{number}").node_name for number in range(4))
    assert placed[0] == placed[1] != placed[2] == placed[3]
    assert seen("scheduler_batch_attempts_total", result="hint_used") == 4
    rescored = None if version == "1.36" else 3  # for the first one all nodes are evaluated
    assert seen("scheduler_batch_rescore_attempts_total") == rescored
    assert seen("scheduler_batch_rescore_duration_seconds_count") == rescored
    assert seen("scheduler_batch_cache_flushed_total") is None


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_watches_are_shown_as_informers_since_1_37(autojump_clock: MockClock, version: str) -> None:
    async with virtual_cluster(nodes=1, emulated_version=version) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        seen = await scrape_of(cluster)
        newest = int(cluster.pod("p").metadata.resource_version)
    families = ("store_resource_version", "queued_items", "processing_latency_seconds_count")
    if version == "1.36":
        assert not any(seen.by("resource", f"informer_{one}") for one in families)
        return
    of_pods = {"name": "kube-scheduler", "group": "", "version": "v1", "resource": "pods"}
    assert seen("informer_store_resource_version", **of_pods) == newest
    assert seen("informer_queued_items", **of_pods) == 0
    processed = seen("informer_processing_latency_seconds_count", **of_pods)
    assert processed is not None
    assert processed >= 3  # nothing is there, the pod comes, it has a node
    assert {"nodes", "storageclasses", "deviceclasses"} <= seen.by("resource", "informer_store_resource_version").keys()


def test_the_claims_of_extended_resources_are_counted_under_one_name_in_each_version() -> None:
    old, new = "scheduler_resourceclaim_creates_total", "dynamic_resource_allocation_resourceclaim_creates_total"
    assert FAMILIES[old].until == FAMILIES[new].since == (1, 37)


@pytest.mark.parametrize(("version", "stability", "deprecated"), [("1.36", "ALPHA", ""), ("1.37", "BETA", "1.37.0")])
async def test_the_help_says_how_stable_a_metric_is_in_the_version(
    version: str, stability: str, deprecated: str, autojump_clock: MockClock
) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=1)], emulated_version=version) as cluster:
        await cluster.create(pod("low", cpu=1))
        await cluster.settle()
        await cluster.create(pod("high", cpu=1, priority=10))
        await cluster.settle()
        _type, body = await rendered(metrics_of(cluster).pages.metrics, "")
    page = body.decode()
    name = "scheduler_scheduling_algorithm_duration_seconds"
    assert f"# HELP {name} [{stability}] Scheduling algorithm latency in seconds\n" in page
    shown = f"(Deprecated since {deprecated}) " if deprecated else ""
    text = f"[ALPHA] {shown}Duration in seconds for running goroutines for the preemption.\n"
    assert f"# HELP scheduler_preemption_goroutines_duration_seconds {text}" in page


@pytest.mark.parametrize(("version", "of_others", "own"), [("1.36", 1, "Unschedulable"), ("1.37", None, "Target")])
async def test_plugins_that_look_at_the_pod_itself_are_not_asked_at_changes_of_others_since_1_37(
    version: str, of_others: int | None, own: str, autojump_clock: MockClock
) -> None:
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    nodes = [node("free", cpu=1), node("gpu", cpu=1, taints=["gpu=:NoSchedule"])]
    async with virtual_cluster(nodes=nodes, emulated_version=version) as cluster:
        running, waiting = pod("running", cpu=1), pod("waiting", cpu=1)
        await cluster.create(running)
        await cluster.settle()
        await cluster.create(waiting)
        await cluster.settle()
        await cluster.patch(running, {"spec": {"tolerations": tolerations}})
        await cluster.settle()
        assert not cluster.pod("waiting").node_name
        await cluster.patch(waiting, {"spec": {"tolerations": tolerations}})
        await cluster.settle()
        assert cluster.pod("waiting").node_name == "gpu"
        seen = await scrape_of(cluster)
    asked, plugin = "scheduler_queueing_hint_execution_duration_seconds_count", "TaintToleration"
    assert seen(asked, plugin=plugin, event="AssignedPodUpdatePodToleration") == of_others
    assert seen(asked, plugin=plugin, event=f"{own}PodUpdatePodToleration") == 1


async def test_groups_are_counted_as_entities_and_preemptors(autojump_clock: MockClock) -> None:
    async with cluster_of("1.37", nodes=[node("a", cpu="2")]) as cluster:
        await cluster.create(pod("low", cpu="2", node_name="a"))
        await trio.sleep(2)
        await cluster.create(pod_group("gang", min_count=2, priority=10))
        for number in range(2):
            await cluster.create(member(f"p{number}", "gang", cpu="1", priority=10))
        await cluster.create(member("alone", "unknown", cpu="1"))
        await trio.sleep(0.5)
        waiting = await scrape_of(cluster)
        await trio.sleep(20)
        seen = await scrape_of(cluster)
    assert waiting("scheduler_queued_entities", queue="incomplete", type="podgroup") == 1
    assert waiting("scheduler_pending_pods", queue="incomplete") == 1
    assert waiting("scheduler_queued_entities", queue="gated", type="podgroup") == 1
    assert waiting("scheduler_pending_pods", queue="gated") == 2
    entered = seen.by("type", "scheduler_queue_incoming_entities_total")
    assert entered["podgroup"] > 0
    assert "pod" not in entered
    assert seen.by("result", "scheduler_workload_preemption_attempts_total") == {"Success": 1}
    assert seen("scheduler_workload_preemption_victims_sum") == 1
    assert seen("scheduler_preemption_victims_count") == 0
    assert seen("scheduler_preemption_execution_duration_seconds_count", preemptor="podgroup", result="success") == 1
    assert seen("scheduler_preemption_evaluation_duration_seconds_count", preemptor="podgroup", result="Success") == 1
    assert seen("scheduler_preemption_workload_disruptions_count", preemptor="podgroup") is None
    counts = seen.by("extension_point", "scheduler_framework_extension_point_duration_seconds_count")
    assert counts["PodGroupPostFilter"] == 1
    assert counts["PlacementFeasible"] > 1


async def test_metrics_of_groups_as_entities_are_of_1_37(autojump_clock: MockClock) -> None:
    async with cluster_of("1.36", nodes=1) as cluster:
        _type, page = await rendered(metrics_of(cluster).pages.metrics, "")
    names = ("queued_entities", "workload_preemption_victims", "preemption_execution_duration_seconds")
    assert not [name for name in names if f"scheduler_{name}".encode() in page]


@pytest.mark.parametrize(
    ("version", "mode", "preemptor", "disruptions"),
    [
        ("1.37", "Pod", "pod", 2),
        ("1.37", "PodGroup", "pod", 1),
        ("1.37", "PodGroup", "podgroup", 1),
        ("1.36", "PodGroup", "podgroup", None),
    ],
)
async def test_budgets_and_groups_that_a_preemption_disrupts_are_counted(
    autojump_clock: MockClock, version: str, mode: str, preemptor: str, disruptions: int | None
) -> None:
    async with cluster_of(version, nodes=[node("a", cpu="2")]) as cluster:
        await cluster.create(disruption_budget("web", "app=web"))
        await cluster.create(pod_group("running", disruption_mode=mode))
        for number in range(2):
            await cluster.create(member(f"r{number}", "running", cpu="1", labels={"app": "web"}))
        await trio.sleep(2)
        assert all(cluster.pod(f"r{number}").node_name == "a" for number in range(2))
        if preemptor == "podgroup":
            await cluster.create(pod_group("gang", min_count=1, priority=10))
            await cluster.create(member("high", "gang", cpu="2", priority=10))
        else:
            await cluster.create(pod("high", cpu="2", priority=10))
        await trio.sleep(2)
        seen = await scrape_of(cluster)
        await cluster.settle()
        assert cluster.pod("high").node_name == "a"
    of, counted = {"preemptor": preemptor}, disruptions is not None
    assert seen("scheduler_preemption_evaluation_duration_seconds_count", result="Success", **of) == (
        1 if counted else None
    )
    assert seen("scheduler_preemption_pdb_violations_total", **of) == (2 if counted else None)
    assert seen("scheduler_preemption_workload_disruptions_count", **of) == (1 if counted else None)
    assert seen("scheduler_preemption_workload_disruptions_sum", **of) == disruptions


@pytest.mark.parametrize("version", ["1.36", "1.37"])
async def test_placements_that_a_group_is_tried_in_are_counted(autojump_clock: MockClock, version: str) -> None:
    nodes = [node(name, cpu="2", labels={"rack": name}) for name in ("a", "b", "c")]
    gates = {"TopologyAwareWorkloadScheduling": True}
    async with cluster_of(version, nodes=nodes, gates=gates) as cluster:
        await cluster.create(pod("here", cpu="2", node_name="a"))
        await cluster.create(pod_group("gang", min_count=2, topology_key="rack"))
        for number in range(2):
            await cluster.create(member(f"p{number}", "gang", cpu="1"))
        await trio.sleep(2)
        seen = await scrape_of(cluster)
        assert cluster.pod("p0").node_name
    is_new = version == "1.37"
    assert seen("scheduler_generated_placements_total") == (3 if is_new else None)
    for name in ("placement_evaluations_total", "placement_evaluation_duration_seconds_count"):
        assert seen.by("result", f"scheduler_{name}") == ({"feasible": 2, "infeasible": 1} if is_new else {})
