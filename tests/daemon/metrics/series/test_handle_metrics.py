import logging
import math
from typing import Any, ClassVar

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.limits import MAX_PLUGIN_METRICS, MAX_PLUGIN_SERIES
from trio_sched.daemon.metrics.series.handle_metrics import OTHER, PluginMetricRegistry
from trio_sched.plugin_api import Handle, Pod, hookimpl
from trio_sched.testing import FakeHandle, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


class LoadAware(PluginBase):
    """Counts the pods that it sees."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.seen = handle.metrics.counter("pods_total", "Pods that it has seen.", labels=("namespace", "class"))
        self.age = handle.metrics.gauge("data_age_seconds", "How old the data is.")
        self.took = handle.metrics.histogram("query_seconds", "What a query takes.", buckets=(0.1, 1))

    @hookimpl
    def pre_filter(self, pod: Pod) -> None:
        self.seen.inc(namespace=pod.namespace, **{"class": "a"})
        self.age.set(1.5)
        self.took.observe(0.5)


async def page(cluster: VirtualCluster, accept: str = "") -> bytes:
    assert cluster.scheduler.assembly is not None
    _, pieces = await cluster.scheduler.assembly.metrics.pages.metrics.render(accept)
    return b"".join(pieces)


async def test_metrics_are_on_the_page_under_the_name_of_the_plugin(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[LoadAware]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        shown = (await page(cluster)).decode()
        assert "# HELP trio_sched_plugin_load_aware_pods_total Pods that it has seen.\n" in shown
        assert 'trio_sched_plugin_load_aware_pods_total{class="a",namespace="default"} 1\n' in shown
        assert "# TYPE trio_sched_plugin_load_aware_data_age_seconds gauge\n" in shown
        assert "trio_sched_plugin_load_aware_data_age_seconds 1.5\n" in shown
        assert 'trio_sched_plugin_load_aware_query_seconds_bucket{le="0.1"} 0\n' in shown
        assert 'trio_sched_plugin_load_aware_query_seconds_bucket{le="1"} 1\n' in shown
        assert "trio_sched_plugin_load_aware_query_seconds_count 1\n" in shown


async def test_a_reload_leaves_them_as_they_are(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[LoadAware]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        await cluster.reload(plugins=[LoadAware])
        await cluster.create(pod("q"))
        await trio.sleep(1)
        shown = (await page(cluster)).decode()
        assert 'load_aware_pods_total{class="a",namespace="default"} 2\n' in shown
        assert shown.count("# TYPE trio_sched_plugin_load_aware_pods_total") == 1


@pytest.mark.parametrize(
    "accept", ["", "application/openmetrics-text; version=1.0.0", "application/vnd.google.protobuf"]
)
async def test_hostile_values_do_not_break_the_page(accept: str, autojump_clock: MockClock) -> None:
    class Hostile(PluginBase):
        def __init__(self, args: Any, handle: Handle) -> None:
            counter = handle.metrics.counter("x", "Half a pair: \ud800, a line\nbreak", labels=("y",))
            for value in ("\ud800", 'quo"te\\\n', "\0", "x" * 10**6, 7, None, b"bytes"):
                counter.inc(y=value)
            gauge = handle.metrics.gauge("g", "Numbers.", labels=("of",))
            for number in (math.inf, -math.inf, math.nan, 1e308):
                gauge.set(number, of=number)
            handle.metrics.histogram("h", "Numbers.").observe(math.inf)

        @hookimpl
        def pre_filter(self) -> None: ...

    async with virtual_cluster(nodes=1, plugins=[Hostile]) as cluster:
        shown = await page(cluster, accept)
        assert b"trio_sched_plugin_hostile_x" in shown
        assert b"trio_sched_plugin_hostile_g" in shown
        assert b"workqueue_depth" in shown
        assert len(shown) < 10**6


def test_the_instances_of_all_profiles_share_them() -> None:
    registry = PluginMetricRegistry()
    one, other = registry.of_plugin("GPUPacking"), registry.of_plugin("GPUPacking")
    one.counter("a_total", "A.").inc()
    other.counter("a_total", "A.").inc(2)
    (shown,) = registry.collect()
    assert shown.family.name == "trio_sched_plugin_gpu_packing_a_total"
    assert shown.series == [((), 3.0)]


@pytest.mark.parametrize(
    ("plugin", "snake"), [("LoadAware", "load_aware"), ("my-plugin.v2", "my_plugin_v2"), ("FGD", "fgd"), ("A1b", "a1b")]
)
def test_names_of_plugins_are_in_snake_case(plugin: str, snake: str) -> None:
    registry = PluginMetricRegistry()
    registry.of_plugin(plugin).gauge("x", "X.")
    assert list(registry.metrics) == [f"trio_sched_plugin_{snake}_x"]


class Wrong:
    """What can be wrong with a metric."""

    CASES: ClassVar[list[tuple[str, tuple[Any, ...], dict[str, Any], str]]] = [
        ("counter", ("a-b", "X."), {}, "metric 'a-b' must be of .* letters, digits and _, a letter first; write 'a_b'"),
        ("counter", ("a" * 10**6, "X."), {}, "must be of at most 200 letters"),
        ("histogram", ("a", "X."), {"buckets": range(10**9)}, "has more than 200 buckets"),
        ("counter", ("", "X."), {}, "metric '' must be"),
        ("counter", (7, "X."), {}, "metric 7 must be"),
        ("gauge", ("a", ""), {}, "metric a needs a help"),
        ("gauge", ("a", "X."), {"labels": "node"}, "must be a tuple of names, not 'node'"),
        ("gauge", ("a", "X."), {"labels": ("a b",)}, "label 'a b' must be"),
        ("gauge", ("a", "X."), {"labels": ("le",)}, "means something else to Prometheus"),
        ("gauge", ("a", "X."), {"labels": ("b", "b")}, "has a label twice"),
        ("histogram", ("a", "X."), {"buckets": (2, 1)}, "must be finite and rise"),
        ("histogram", ("a", "X."), {"buckets": ()}, "must be finite and rise"),
        ("histogram", ("a", "X."), {"buckets": ("x",)}, "must be numbers"),
        ("gauge", ("known_total", "K."), {}, "is used in two ways: counter .* and gauge"),
        ("counter", ("known_total", "K."), {"labels": ("a",)}, "is used in two ways"),
        ("histogram", ("known_seconds", "K."), {"buckets": (1, 2)}, r"with no labels and the buckets 1\.0, 2\.0"),
    ]


@pytest.mark.parametrize(("method", "args", "more", "problem"), Wrong.CASES)
def test_what_cannot_be_meant_is_said(method: str, args: Any, more: dict[str, Any], problem: str) -> None:
    metrics = PluginMetricRegistry().of_plugin("Mine")
    metrics.counter("known_total", "K.")
    metrics.histogram("known_seconds", "K.", buckets=(1,))
    with pytest.raises(ValueError, match=problem):
        getattr(metrics, method)(*args, **more)


def test_a_name_of_the_scheduler_itself_is_not_given() -> None:
    with pytest.raises(ValueError, match="trio_sched_plugin_failures_total is one of the scheduler's own"):
        PluginMetricRegistry().of_plugin("failures").counter("total", "Mine.")


def test_values_and_labels_that_cannot_be_meant() -> None:
    metrics = PluginMetricRegistry().of_plugin("Mine")
    counter, histogram = metrics.counter("c", "C.", labels=("b", "a")), metrics.histogram("h", "H.")
    with pytest.raises(ValueError, match="only grows, so it cannot count -1; use a gauge"):
        counter.inc(-1, a=1, b=2)
    for forever in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"cannot count {forever}"):
            counter.inc(forever, a=1, b=2)
    with pytest.raises(ValueError, match="takes the labels b, a, not a"):
        counter.inc(a=1)
    with pytest.raises(ValueError, match="takes no labels, not a"):
        histogram.observe(1, a=1)
    with pytest.raises(ValueError, match="takes numbers"):
        counter.inc("many", a=1, b=2)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ValueError, match="takes numbers"):
        counter.inc(10**400, a=1, b=2)
    with pytest.raises(ValueError, match="cannot count NaN"):
        histogram.observe(math.nan)


def test_ever_new_labels_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    registry = PluginMetricRegistry()
    metrics = registry.of_plugin("Mine")
    counter, gauge = metrics.counter("c", "C.", labels=("a",)), metrics.gauge("g", "G.", labels=("a",))
    histogram = metrics.histogram("h", "H.", labels=("a",))
    with caplog.at_level(logging.WARNING):
        for number in range(MAX_PLUGIN_SERIES + 10):
            counter.inc(a=number)
            gauge.set(number, a=number)
            histogram.observe(number, a=number)
    assert len(caplog.messages) == 3
    assert counter.values[OTHER,] == 10
    assert (OTHER,) not in gauge.values
    assert len(gauge.values) == MAX_PLUGIN_SERIES
    assert histogram.values[OTHER,].count == 10  # type: ignore[union-attr]  # a histogram
    gauge.clear()
    gauge.inc(2, a="x")
    gauge.inc(-3, a="x")
    assert gauge.values == {("x",): -1.0}


def test_there_are_not_ever_more_metrics() -> None:
    metrics = PluginMetricRegistry().of_plugin("Mine")
    for number in range(MAX_PLUGIN_METRICS):
        metrics.gauge(f"g{number}", "G.")
    with pytest.raises(ValueError, match="one more than the 1000 that plugins can have"):
        metrics.gauge("last", "G.")
    metrics.gauge("g0", "G.")


def test_tests_read_them_from_the_fake_handle() -> None:
    handle = FakeHandle()
    plugin = LoadAware(None, handle.for_plugin("LoadAware"))
    plugin.pre_filter(pod("p"))
    assert handle.metric_value("pods_total", namespace="default", **{"class": "a"}) == 1
    assert handle.metric_value("pods_total", namespace="other", **{"class": "a"}) == 0
    assert handle.metric_value("query_seconds") == 1
    assert handle.metric_value("data_age_seconds") == 1.5
    with pytest.raises(LookupError, match="no plugins have made a metric 'x'; there are: pods_total"):
        handle.metric_value("x")


async def test_tests_read_them_from_a_virtual_cluster(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[LoadAware], scheduler=False) as cluster:
        with pytest.raises(LookupError, match="no scheduler has started"):
            cluster.metric_value("LoadAware", "data_age_seconds")
        await cluster.start_scheduler()
        await cluster.create(pod("p"))
        await cluster.wait_scheduled("p")
        assert cluster.metric_value("LoadAware", "data_age_seconds") == 1.5
        assert cluster.metric_value("LoadAware", "pods_total", namespace="other", **{"class": "a"}) == 0
        with pytest.raises(LookupError, match="plugin 'LoadAware' has not made a metric 'x'; there are: pods_total"):
            cluster.metric_value("LoadAware", "x")
        with pytest.raises(LookupError, match="plugin 'Nobody' has not made a metric 'x'; there are: none"):
            cluster.metric_value("Nobody", "x")
        with pytest.raises(ValueError, match="takes the labels namespace, class, not none"):
            cluster.metric_value("LoadAware", "pods_total")
