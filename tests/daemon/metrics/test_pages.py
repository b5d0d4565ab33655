import time
from collections.abc import Iterator

import pytest
import trio
from prometheus_client import REGISTRY, Counter, Gauge, Histogram, Summary
from prometheus_client.core import GaugeMetricFamily
from scraped import Scraped, metrics_of, rendered, scrape_of
from stage import Assemble, MakeStage
from trio.testing import MockClock

from trio_sched.daemon import slices
from trio_sched.daemon.metrics import pages
from trio_sched.daemon.metrics.metrics import Metrics
from trio_sched.daemon.metrics.options import MetricsOptions
from trio_sched.daemon.metrics.pages import ResourcesPage
from trio_sched.objects.pod import Pod
from trio_sched.testing import pod
from trio_sched.testing.cluster import virtual_cluster

TEXT = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
EVALUATIONS = "scheduler_plugin_evaluation_total"


async def read(metrics: Metrics) -> Scraped:
    return Scraped.of((await rendered(metrics.pages.metrics, ""))[1].decode())


async def test_before_the_first_pod_only_what_has_no_labels_and_the_evaluations_are_shown(assembled: Assemble) -> None:
    metrics = assembled().metrics
    seen = await read(metrics)
    assert seen("scheduler_schedule_attempts_total") is None
    assert seen("scheduler_framework_extension_point_duration_seconds_count") is None
    assert seen(EVALUATIONS, plugin="NodeResourcesFit", extension_point="Score") == 0
    assert seen("scheduler_preemption_victims_count") == 0
    assert seen("leader_election_master_status") is None


async def test_this_build_and_its_gates_are_described_until_a_reset(assembled: Assemble) -> None:
    metrics = assembled(gates={"NodeDeclaredFeatures": False}).metrics
    seen = await read(metrics)
    assert seen("kubernetes_build_info", git_version="v1.36.2", major="1", minor="36") == 1
    assert seen("version_info", binary="1.36.2", component="kube", emulation="1.36", min_compat="1.35") == 1
    assert seen("kubernetes_feature_enabled", name="NodeDeclaredFeatures") == 0
    assert seen("kubernetes_feature_enabled", name="SchedulerPopFromBackoffQ", stage="BETA") == 1
    assert seen("kubernetes_feature_enabled", name="AllAlpha", stage="ALPHA") == 0
    registered = seen("registered_metrics_total", stability_level="STABLE")
    assert registered is not None
    assert registered >= 8
    metrics.pages.metrics.reset()
    seen = await read(metrics)
    assert seen("kubernetes_build_info") is None
    assert seen("version_info") is None
    assert seen("kubernetes_feature_enabled") is None


async def test_a_reset_forgets_series_with_labels(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        metrics_of(cluster).pages.metrics.reset()
        seen = await scrape_of(cluster)
        await cluster.create(pod("q"))
        await cluster.settle()
        later = await scrape_of(cluster)
    assert seen("scheduler_schedule_attempts_total") is None
    assert seen("scheduler_framework_extension_point_duration_seconds_count") is None
    assert seen("scheduler_queue_incoming_pods_total") is None
    assert seen("rest_client_requests_total") is None
    assert seen(EVALUATIONS) == 0
    assert seen("scheduler_pod_scheduling_attempts_count") == 1  # what has no labels is not reset, as in kube-scheduler
    assert seen("scheduler_cache_size", type="pods") == 1
    assert later("scheduler_schedule_attempts_total", result="scheduled") == 1
    assert later("scheduler_framework_extension_point_duration_seconds_count", extension_point="Bind") == 1
    assert later("scheduler_framework_extension_point_duration_seconds_count", extension_point="Filter") == 1


async def test_families_can_be_disabled_and_labels_restricted(assembled: Assemble) -> None:
    metrics = assembled().metrics
    allowed = {("scheduler_schedule_attempts_total", "result"): frozenset({"scheduled"})}
    metrics.options = MetricsOptions(disabled=frozenset({"process_open_fds", "nonsense"}), allowed_values=allowed)
    for result in ("scheduled", "unschedulable", "error", "error"):
        metrics.recorder.attempts.observe(1.0, result, "p")
    seen = await read(metrics)
    assert seen("process_open_fds") is None
    assert seen("process_max_fds") is not None
    assert seen("disabled_metrics_total") == 2
    assert seen("hidden_metrics_total") == 0
    assert seen.by("result", "scheduler_schedule_attempts_total") == {"scheduled": 1, "unexpected": 3}
    assert seen("cardinality_enforcement_unexpected_categorizations_total") == 3
    durations = seen.by("result", "scheduler_scheduling_attempt_duration_seconds_count")
    assert durations == {"scheduled": 1, "unschedulable": 1, "error": 2}


async def test_histograms_with_labels_that_are_not_allowed_are_added_up(assembled: Assemble) -> None:
    metrics = assembled().metrics
    family = "scheduler_scheduling_attempt_duration_seconds"
    metrics.options = MetricsOptions(allowed_values={(family, "profile"): frozenset({"known"})})
    for profile in ("known", "a", "b"):
        metrics.recorder.attempts.observe(3.0, "scheduled", profile)
    for _ in range(2):  # reading changes nothing
        seen = await read(metrics)
        assert seen.by("profile", f"{family}_count") == {"known": 1, "unexpected": 2}
        assert seen.by("profile", f"{family}_sum") == {"known": 3.0, "unexpected": 6.0}
    assert seen("cardinality_enforcement_unexpected_categorizations_total") == 2


async def test_an_unknown_family_or_label_in_an_allow_list_changes_nothing(assembled: Assemble) -> None:
    metrics = assembled().metrics
    allowed = {("nonsense", "a"): frozenset({"b"}), (EVALUATIONS, "nonsense"): frozenset({"b"})}
    metrics.options = MetricsOptions(allowed_values=allowed)
    assert (await read(metrics))(EVALUATIONS, plugin="NodeName") == 0


async def test_health_checks_are_shown_with_their_last_status_and_all_outcomes(assembled: Assemble) -> None:
    shown = assembled().metrics.pages
    for status in ("success", "success", "error"):
        shown.record_check("readyz", "shutdown", status)
    shown.record_check("livez", "ping", "success")
    shown.record_check("readyz", "informer-sync", "pending")
    content_type, body = await rendered(shown.slis, "")
    assert content_type == TEXT
    seen = Scraped.of(body.decode())
    assert seen("kubernetes_healthcheck", name="shutdown", type="readyz") == 0
    assert seen("kubernetes_healthcheck", name="ping", type="livez") == 1
    assert seen("kubernetes_healthcheck", name="informer-sync") == -1
    assert seen.by("status", "kubernetes_healthchecks_total", name="shutdown") == {"success": 2, "error": 1}
    began = seen("process_start_time_seconds")
    assert began is not None
    assert 0 <= time.time() - began < 24 * 3600
    shown.slis.reset()
    assert b"kubernetes_healthcheck" not in (await rendered(shown.slis, ""))[1]


async def test_ever_new_names_of_health_checks_take_no_more_memory(assembled: Assemble) -> None:
    metrics = assembled().metrics
    for number in range(5000):
        metrics.pages.record_check("livez", f"check-{number}", "success")
    assert len(metrics.health_checks.counts) == len(metrics.health_checks.last) == 1000


# --- pods --------------------------------------------------------------------------------------------------------


def page_of(pods: list[Pod]) -> ResourcesPage:
    return ResourcesPage(lambda: pods, frozenset())


async def test_a_pod_whose_quantities_cannot_be_read_costs_itself_only() -> None:
    _content_type, body = await rendered(page_of([pod("bad", cpu="nonsense"), pod("good", cpu="1500m")]), "")
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert lines == [
        'kube_pod_resource_request{namespace="default",node="",pod="good",priority="",resource="cpu",'
        'scheduler="default-scheduler",unit="cores"} 1.5'
    ]


async def test_other_tasks_run_while_a_big_page_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def perf_counter() -> float:  # each reading is a millisecond after the one before
        nonlocal now
        now += 0.001
        return now

    monkeypatch.setattr(slices.time, "perf_counter", perf_counter)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    pods = [pod(f"p{number % 7}-{number}", cpu="1", node_name=f"n{number % 3}") for number in range(2500)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        _content_type, body = await rendered(page_of(pods), "")
        nursery.cancel_scope.cancel()
    assert turns > 1000
    lines = [line for line in body.decode().splitlines() if line.startswith("kube_pod_resource_request{")]
    assert len(lines) == 2500
    assert lines == sorted(lines, key=lambda line: (line.split('node="')[1][:2], line.split('pod="')[1].split('"')[0]))


# --- metrics of plugins ------------------------------------------------------------------------------------------


class Failing:
    def collect(self) -> Iterator[GaugeMetricFamily]:
        raise ValueError("no database")

    def describe(self) -> list[GaugeMetricFamily]:
        return []


class Odd:
    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("odd", "Help.", value="no number")  # type: ignore[arg-type]
        yield GaugeMetricFamily("after_odd", "Help.", value=1.0)

    def describe(self) -> list[GaugeMetricFamily]:
        return []


async def test_what_plugins_count_with_prometheus_client_is_shown_too(assembled: Assemble) -> None:
    mine = [
        Counter("my_pods", "Help.", ["zone"]),
        Gauge("my_gauge", "Help."),
        Histogram("my_seconds", "Help.", ["zone"], buckets=(1, 2)),
        Summary("my_summary", "Help."),
        Gauge("scheduler_pending_pods", "Not mine."),
    ]
    pods, gauge, seconds, summary, _taken = mine
    try:
        pods.labels("b").inc(2)
        pods.labels("a").inc()
        gauge.set(7)
        seconds.labels("a").observe(1.5)
        summary.observe(3)
        content_type, body = await rendered(assembled().metrics.pages.metrics, "")
    finally:
        for one in mine:
            REGISTRY.unregister(one)
    text = body.decode()
    assert content_type == TEXT
    assert "# HELP my_pods_total Help.\n# TYPE my_pods_total counter\n" in text
    assert 'my_pods_total{zone="a"} 1\nmy_pods_total{zone="b"} 2\n' in text
    assert "# TYPE my_gauge gauge\nmy_gauge 7\n" in text
    assert (
        'my_seconds_bucket{zone="a",le="1"} 0\nmy_seconds_bucket{zone="a",le="2"} 1\n'
        'my_seconds_bucket{zone="a",le="+Inf"} 1\nmy_seconds_sum{zone="a"} 1.5\nmy_seconds_count{zone="a"} 1\n'
    ) in text
    assert "my_summary_sum 3\n" in text
    assert "Not mine" not in text
    assert text.count("# TYPE python_info ") == 1


@pytest.mark.parametrize(("collector", "said"), [(Failing(), "no database"), (Odd(), "could not convert")])
async def test_a_collector_of_a_plugin_that_fails_costs_its_own_metrics_only(
    assembled: Assemble, collector: Failing | Odd, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    REGISTRY.register(collector)
    try:
        seen = await read(assembled().metrics)
    finally:
        REGISTRY.unregister(collector)
    assert seen("scheduler_preemption_victims_count") == 0
    assert said in caplog.text
    assert seen("odd") is None
    if isinstance(collector, Odd):
        assert seen("after_odd") == 1


# --- other sources -----------------------------------------------------------------------------------------------


async def test_the_serving_code_can_count(assembled: Assemble) -> None:
    metrics = assembled().metrics
    serving = metrics.serving
    serving.authenticated("success", 0.01)
    for name in ("admin", "jane@example.com", "system:kube-scheduler", "kubelet"):
        serving.authenticated_user(name)
    serving.token_looked_up("miss", 0.02)
    serving.token_fetch_began("in_flight")
    serving.token_fetched("ok")
    serving.token_reviewed("201", 0.3)
    serving.authorized("no-opinion", 0.01)
    serving.access_reviewed("<error>", 11.0)
    serving.client_certificate_shown(3600.0)
    seen = await read(metrics)
    assert seen("authentication_attempts_total", result="success") == 1
    users = seen.by("username", "authenticated_user_requests_total")
    assert users == {"admin": 1, "email_id": 1, "other": 1, "kubelet": 1}
    assert seen("authentication_token_cache_request_total", status="miss") == 1
    assert seen("authentication_token_cache_active_fetch_count", status="in_flight") == 1
    assert seen("authentication_token_cache_fetch_total", status="ok") == 1
    assert seen("apiserver_delegated_authn_request_total", code="201") == 1
    assert seen("apiserver_delegated_authn_request_duration_seconds_bucket", code="201", le="0.5") == 1
    assert seen("authorization_attempts_total", result="no-opinion") == 1
    assert seen("apiserver_delegated_authz_request_duration_seconds_bucket", code="<error>", le="10") == 0
    assert seen("apiserver_client_certificate_expiration_seconds_bucket", le="3600") == 1
    serving.token_fetch_ended("in_flight")
    metrics.pages.metrics.reset()
    seen = await read(metrics)
    assert seen("authentication_attempts_total") is None
    assert seen("authentication_token_cache_active_fetch_count", status="in_flight") == 0


async def test_a_change_that_does_not_fit_the_cache_is_drift(staged: MakeStage) -> None:
    stage = staged()
    (known,) = stage.add(pod("p", node_name="n"))
    stage.add(known)  # added twice, which no API server says
    stage.delete(known)
    stage.delete(known)
    assert (await read(stage.assembly.metrics))("trio_sched_cache_drift_total") == 2


async def test_what_the_process_uses_is_shown(assembled: Assemble) -> None:
    seen = await read(assembled().metrics)
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds", "virtual_memory_bytes"):
        value = seen(f"process_{name}")
        assert value is not None, name
        assert value > 0
    assert seen("python_info", implementation="CPython") == 1
    assert seen("rest_client_exec_plugin_ttl_seconds") == float("inf")


def test_pages_keep_their_promise() -> None:
    for page in (pages.AllMetricsPage, pages.ResourcesPage, pages.SliPage):
        assert {"render", "reset"} <= set(vars(page))
