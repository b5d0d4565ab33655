"""Plugins that declare custom resources: read, hinted on, written, defined late, and with objects that do not fit."""

import re
from typing import Any, ClassVar

import msgspec
import pytest
import trio
from attrs import frozen
from msgspec import Struct
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.permissions import cluster_rules
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api import (
    Action,
    CustomObject,
    CustomResource,
    EventRegistration,
    Handle,
    Hint,
    KindNotWatched,
    ObjectGone,
    ObjectMeta,
    Pod,
    Status,
    WriteConflict,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import custom_resource_definition, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.testing.cluster_objects import Refused


class QuotaSpec(Struct, frozen=True, rename="camel"):
    max_pods: int


class QuotaStatus(Struct, frozen=True, rename="camel"):
    used_pods: int = 0


class Quota(Struct, frozen=True):
    metadata: ObjectMeta
    spec: QuotaSpec
    status: QuotaStatus = QuotaStatus()


QUOTA = CustomResource("example.com", "v1alpha1", "Quota", type=Quota)


class Quotas(PluginBase):
    """Lets a pod pass if the quota of its namespace allows any."""

    watches: ClassVar = (QUOTA,)
    writes: ClassVar = {QUOTA: ("create", "patch", "delete"), QUOTA.status: ("patch",)}

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        type(self).log.append(handle)

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        quota = self.handle.object(QUOTA, "quota", pod.namespace)
        return None if quota is not None and quota.spec.max_pods > 0 else unschedulable("no quota")

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(QUOTA, Action.ADD | Action.UPDATE, self.hint)]

    def hint(self, pod: Pod, old: Quota | None, new: Quota | None) -> Hint:
        assert new is not None
        type(self).log.append((type(old), type(new), new.spec.max_pods))
        return Hint.QUEUE if new.metadata.namespace == pod.namespace and new.spec.max_pods else Hint.SKIP


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    Quotas.log.clear()


def quota(max_pods: Any, name: str = "quota", namespace: str = "default") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Quota",
        "metadata": metadata,
        "spec": {"maxPods": max_pods},
    }


async def test_objects_are_typed_and_their_changes_move_pods(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Quotas], custom_resources=[QUOTA]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == ""
        await cluster.create(quota(0))
        await cluster.create(quota(9, namespace="kube-system"))
        await cluster.settle()
        assert cluster.pod("p").node_name == ""
        await cluster.patch(quota(0), {"spec": {"maxPods": 2}})
        await trio.sleep(20)  # longer than the backoff, shorter than the flush of pods that wait too long
        assert cluster.pod("p").node_name == "node-1"
        handle: Handle = Quotas.log[0]
        (found,) = [one for one in handle.objects(QUOTA) if one.metadata.namespace == "default"]
        assert found == handle.object(QUOTA, "quota", "default")
        assert found.spec == QuotaSpec(2)
        assert (Quota, Quota, 2) in Quotas.log


async def test_a_definition_that_comes_later_is_picked_up_and_its_lack_is_said_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Quotas]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(200)
        said = [line for line in caplog.messages if "cannot be watched" in line]
        assert len(said) == 1
        assert "quotas" in said[0]
        assert "is the CustomResourceDefinition installed? It is watched as soon as it is served" in said[0]
        assert list(Quotas.log[0].objects(QUOTA)) == []
        await cluster.create(custom_resource_definition(QUOTA))
        await cluster.create(quota(3))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"


async def test_an_object_that_does_not_fit_costs_itself_and_is_named(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Quotas], custom_resources=[QUOTA], scheduler=False) as cluster:
        await cluster.create(quota("many", name="bad"))
        await cluster.create(quota(1))
        await cluster.start_scheduler()
        handle: Handle = Quotas.log[0]
        assert [one.metadata.name for one in handle.objects(QUOTA)] == ["quota"]
        assert "bad" in caplog.text
        assert "Expected int, got str" in caplog.text
        await cluster.patch(quota(1), {"spec": {"maxPods": [[]]}})
        await trio.sleep(200)  # with a few bookmarks, which have no spec
        assert handle.object(QUOTA, "quota", "default").spec.max_pods == 1  # type: ignore[union-attr]  # it is there
        caplog.clear()
        await trio.sleep(300)
        assert caplog.messages == []
        await cluster.delete(quota(1))
        await cluster.delete(quota(1, name="bad"))
        await trio.sleep(1)
        assert list(handle.objects(QUOTA)) == []


async def test_plugins_create_read_patch_and_delete_custom_resources(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Quotas], custom_resources=[QUOTA]) as cluster:
        handle: Handle = Quotas.log[0]
        made = await handle.create(QUOTA, {"metadata": {"name": "a"}, "spec": {"maxPods": 1}}, namespace="default")
        assert (made.metadata.name, made.spec.max_pods, made.status.used_pods) == ("a", 1, 0)
        typed = Quota(ObjectMeta(name="b", namespace="default"), QuotaSpec(2))
        assert (await handle.create(QUOTA, typed)).spec == QuotaSpec(2)
        with pytest.raises(WriteConflict):
            await handle.create(QUOTA, typed)
        patched = await handle.patch(
            QUOTA, "a", {"status": {"usedPods": 7}, "spec": None}, namespace="default", subresource="status"
        )
        assert (patched.spec.max_pods, patched.status.used_pods) == (1, 7)
        assert (await handle.read(QUOTA, "a", namespace="default")).status == QuotaStatus(7)
        assert cluster.object(QUOTA, "a", "default") == patched
        with pytest.raises(LookupError, match="give namespace="):
            await handle.read(QUOTA, "a")
        with pytest.raises(TypeError, match="is written as a dict"):
            await handle.create(QUOTA, 5, namespace="default")  # type: ignore[call-overload]  # that is the mistake
        for subresource in ("../a", "Status", None):
            with pytest.raises(LookupError, match="has no subresource"):
                await handle.patch(QUOTA, "a", {}, namespace="default", subresource=subresource)  # type: ignore[arg-type]
        await handle.delete(QUOTA, "a", namespace="default")
        with pytest.raises(ObjectGone):
            await handle.read(QUOTA, "a", namespace="default")


async def test_waiting_for_a_change_of_a_custom_resource(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Quotas], custom_resources=[QUOTA]) as cluster:
        handle: Handle = Quotas.log[0]
        await cluster.create(quota(1))
        await trio.sleep(1)
        before = handle.version(QUOTA)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.patch, quota(1), {"spec": {"maxPods": 2}})
            assert await handle.changed(QUOTA, "quota", timeout_seconds=10, namespace="default")
        assert handle.version(QUOTA) > before


async def test_what_plugins_do_with_custom_resources_is_granted(autojump_clock: MockClock) -> None:
    async with virtual_cluster(plugins=[Quotas], custom_resources=[QUOTA]) as cluster:
        assert cluster.scheduler.assembly is not None
        rules = {(rule.group, rule.resources): rule.verbs for rule in cluster_rules(cluster.scheduler.assembly.loaded)}
    assert rules["example.com", ("quotas",)] == ("create", "delete", "get", "list", "patch", "watch")
    assert rules["example.com", ("quotas/status",)] == ("patch",)


async def test_a_resource_without_a_type_is_a_mapping_with_all_fields(autojump_clock: MockClock) -> None:
    widget = CustomResource("example.com", "v1", "Widget", namespaced=False)

    class Widgets(PluginBase):
        watches: ClassVar = (widget,)
        found: ClassVar[list[CustomObject]] = []

        @hookimpl
        def pre_filter(self) -> None:
            type(self).found += self.handle.objects(widget)

    manifest = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "data": {"a": [1]}}
    async with virtual_cluster(nodes=1, plugins=[Widgets], custom_resources=[widget]) as cluster:
        await cluster.create(manifest)
        await cluster.create(pod("p"))
        await cluster.settle()
    (found,) = Widgets.found
    assert found["data"] == {"a": [1]}
    assert (found.name, found.namespace, found.spec, found["kind"]) == ("w", "", {}, "Widget")
    assert set(found) == {"apiVersion", "kind", "metadata", "data"}


async def test_a_type_can_be_an_attrs_class_and_may_fail_in_any_way(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    @frozen
    class Widget:
        metadata: ObjectMeta
        size: int = 0

        def __attrs_post_init__(self) -> None:
            if self.size == 1:
                raise KeyError("one")
            if self.size == 2:
                raise SystemExit(2)
            if self.size == 4:
                raise BaseExceptionGroup("several", [KeyboardInterrupt(), GeneratorExit()])
            if self.size == 5:
                raise Unprintable

    class Unprintable(BaseException):
        def __str__(self) -> str:
            raise SystemExit(3)

    widget = CustomResource("example.com", "v1", "Widget", type=Widget)

    class Widgets(PluginBase):
        watches: ClassVar = (widget,)

        @hookimpl
        def pre_filter(self) -> None:
            type(self).log[:] = [one.size for one in self.handle.objects(widget)]

    async with virtual_cluster(nodes=1, plugins=[Widgets], custom_resources=[widget]) as cluster:
        for size in range(6):
            head = {"apiVersion": "example.com/v1", "kind": "Widget"}
            await cluster.create({**head, "metadata": {"name": f"w{size}", "namespace": "default"}, "size": size})
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
    assert Widgets.log == [0, 3]
    assert "KeyError: 'one'" in caplog.text
    assert "SystemExit: 2" in caplog.text
    assert "Unprintable" in caplog.text


async def test_two_plugins_must_declare_a_resource_in_the_same_way(autojump_clock: MockClock) -> None:
    class Other(PluginBase):
        watches: ClassVar = (CustomResource("example.com", "v1alpha1", "Quota"),)

        @hookimpl
        def pre_filter(self) -> None: ...

    with pytest.raises(BadPlugin, match=r"it declares CustomResource.*but plugin 'Quotas' declares .* type=Quota"):
        async with virtual_cluster(plugins=[Quotas, Other]):
            pass


async def test_a_declared_resource_is_not_read_by_its_text(autojump_clock: MockClock) -> None:
    async with virtual_cluster(plugins=[Quotas], custom_resources=[QUOTA]):
        handle: Handle = Quotas.log[0]
        with pytest.raises(KindNotWatched, match="read it by that declaration"):
            handle.objects("quotas.v1alpha1.example.com")
        with pytest.raises(KindNotWatched, match="use the same declaration everywhere"):
            handle.objects(CustomResource("example.com", "v1alpha1", "Quota"))
        with pytest.raises(KindNotWatched, match="put its CustomResource into the watches"):
            handle.objects(CustomResource("example.com", "v1", "Gadget"))
        with pytest.raises(TypeError, match="a kind is given as text or as CustomResource"):
            handle.objects(7)  # type: ignore[call-overload]  # that is the mistake


async def test_a_reload_can_change_the_type(autojump_clock: MockClock) -> None:
    class Newer(Struct, frozen=True):
        metadata: ObjectMeta
        spec: dict[str, Any]

    newer = CustomResource("example.com", "v1alpha1", "Quota", type=Newer)

    class Later(PluginBase):
        name = "Quotas"
        watches: ClassVar = (newer,)

        @hookimpl
        def pre_filter(self) -> None:
            type(self).log[:] = list(self.handle.objects(newer))

    Later.name = "Quotas"
    async with virtual_cluster(nodes=1, plugins=[Quotas], custom_resources=[QUOTA]) as cluster:
        await cluster.create(quota(1))
        await trio.sleep(1)
        await cluster.reload(plugins=[Later])
        await cluster.create(pod("p"))
        await cluster.settle()
        (found,) = Later.log
        assert isinstance(found, Newer)
        assert found.spec == {"maxPods": 1}
        assert cluster.scheduler.assembly is not None
        assert QUOTA not in cluster.scheduler.assembly.scheduler.object_cache.kinds


async def test_a_constructor_may_read_what_is_not_watched_yet(autojump_clock: MockClock) -> None:
    class Early(PluginBase):
        watches: ClassVar = (QUOTA,)

        def __init__(self, args: Any, handle: Handle) -> None:
            super().__init__(args, handle)
            type(self).log.append((list(handle.objects(QUOTA)), handle.object(QUOTA, "quota", "default")))

        @hookimpl
        def pre_filter(self) -> None:
            type(self).log.append(len(list(self.handle.objects(QUOTA))))

    async with virtual_cluster(nodes=1, custom_resources=[QUOTA]) as cluster:
        await cluster.create(quota(1))
        await cluster.reload(plugins=[Early])
        await cluster.create(pod("p"))
        await trio.sleep(1)
    assert Early.log == [([], None), 1]


async def test_the_simulator_serves_what_is_defined_only(autojump_clock: MockClock) -> None:
    async with virtual_cluster(scheduler=False) as cluster:
        with pytest.raises(Refused, match="no resource of kind Quota"):
            await cluster.create(quota(1))
        await cluster.create(custom_resource_definition(QUOTA))
        stored = await cluster.create(quota(1))
        assert stored["spec"] == {"maxPods": 1}
        response = await cluster.api.handle("GET", "/apis/example.com/v1alpha1", "", {}, b"")
        assert isinstance(response.body, bytes)
        names = {one["name"]: one["kind"] for one in msgspec.json.decode(response.body)["resources"]}
        assert names == {"quotas": "Quota", "quotas/status": "Quota"}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("Example", "v1", "Quota"), "group 'Example' must be written like example.com"),
        (("app", "v1", "Quota"), "group 'app' has no dot"),
        (("example.com", "1", "Quota"), "version '1' must be written like v1 or v1alpha1"),
        (("example.com", "v1", "quota"), "kind 'quota' must be written like Quota"),
        (("example.com", None, "Quota"), "version None must be written like"),
    ],
)
def test_names_that_cannot_be_are_refused(names: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CustomResource(*names)


@pytest.mark.parametrize("wrong", [int, "Quota", QuotaSpec, dict[str, int]])
def test_types_without_metadata_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"CustomResource: type .*(cannot be used|cannot be decoded)"):
        CustomResource("example.com", "v1", "Quota", type=wrong)


class SnakeSpec(Struct, frozen=True):
    max_pods: int


class SnakeStruct(Struct, frozen=True):
    metadata: ObjectMeta
    specs: list[SnakeSpec] | None = None


@frozen
class SnakeAttrs:
    metadata: ObjectMeta
    max_pods: int = 0


@pytest.mark.parametrize(
    ("wrong", "where", "fix"),
    [
        (SnakeStruct, "SnakeSpec", 'write class SnakeSpec(msgspec.Struct, rename="camel", frozen=True)'),
        (SnakeAttrs, "SnakeAttrs", 'make it a class SnakeAttrs(msgspec.Struct, rename="camel", frozen=True)'),
    ],
)
def test_fields_that_would_be_looked_for_in_snake_case_are_refused(wrong: Any, where: str, fix: str) -> None:
    text = f"{where} reads its field max_pods from 'max_pods', but fields of Kubernetes are written like maxPods; {fix}"
    with pytest.raises(TypeError, match=re.escape(text)):
        CustomResource("example.com", "v1", "Quota", type=wrong)


class ReallySnake(Struct, frozen=True):
    metadata: ObjectMeta
    pods: int = msgspec.field(name="max_pods", default=0)


def test_a_field_that_has_an_underscore_in_the_cluster_is_given_a_name() -> None:
    quota = CustomResource("example.com", "v1", "Quota", type=ReallySnake)
    assert quota.decode(b'{"metadata":{},"max_pods":3}').pods == 3


class CronJob(Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    spec: dict[str, Any]


CRON_JOB = CustomResource("batch", "v1", "CronJob", type=CronJob)
SECRET = CustomResource("", "v1", "Secret")


class OfKubernetes(PluginBase):
    """Reads kinds of Kubernetes: with a class of ours, of its own, without a class, and as text."""

    watches: ClassVar = (CRON_JOB, SECRET, "ConfigMap", "Job", "networkpolicies.v1.networking.k8s.io")
    writes: ClassVar = {"ConfigMap": ("patch",), SECRET: ("patch",)}

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        (cron_job,) = self.handle.objects(CRON_JOB)
        (secret,) = self.handle.objects(SECRET)
        config = self.handle.object("ConfigMap", "c", "default")
        deployments = [one.spec.replicas for one in self.handle.objects("Deployment")]
        self.log.append((cron_job.spec["schedule"], secret["data"], config.data, deployments))
        return None

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on("Deployment", Action.ADD), on(SECRET, Action.UPDATE)]

    @hookimpl
    async def post_bind(self, pod: Pod) -> None:
        for kind, name in (("ConfigMap", "c"), (SECRET, "s")):
            await self.handle.patch(kind, name, {"metadata": {"labels": {"seen": "yes"}}}, namespace="default")


def of_kubernetes() -> list[dict[str, Any]]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {"spec": {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}}
    specs: list[tuple[str, str, str, dict[str, Any]]] = [
        ("v1", "ConfigMap", "c", {"data": {"k": "v"}}),
        ("v1", "Secret", "s", {"data": {"k": "dg=="}}),
        ("batch/v1", "CronJob", "j", {"spec": {"schedule": "0 0 * * *", "suspend": True, "jobTemplate": job}}),
        (
            "apps/v1",
            "Deployment",
            "d",
            {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}},
        ),
    ]
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}
        for version, kind, name, fields in specs
    ]


async def test_kinds_of_kubernetes_are_read_and_written(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[OfKubernetes]) as cluster:
        for one in of_kubernetes():
            await cluster.create(one)
        await cluster.create(pod("p"))
        await cluster.wait_scheduled("p")
        await trio.sleep(1)
        assert OfKubernetes.log == [("0 0 * * *", {"k": "dg=="}, {"k": "v"}, [0])]
        assert cluster.object(SECRET, "s", "default").metadata.labels == {"seen": "yes"}
        assert cluster.object("ConfigMap", "c", "default").metadata.labels == {"seen": "yes"}
        assembly = cluster.scheduler.assembly
        assert assembly is not None
        groups = {(rule.group, name) for rule in cluster_rules(assembly.loaded) for name in rule.resources}
        assert {("", "secrets"), ("", "configmaps"), ("batch", "cronjobs"), ("apps", "deployments")} <= groups
