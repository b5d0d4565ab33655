from random import Random
from typing import Any

import msgspec
import pytest
import trio
from attrs import define
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.pod_groups.pod_group_report import PodGroupReporter
from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, group_unschedulable, other_pod_failed
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api import failure
from trio_sched.simulator import ApiServer
from trio_sched.testing import pod_group

KEY = "default/gang"
SCHEDULED = GroupResult(None)
REFUSED = GroupResult(group_unschedulable())


@define(eq=False)
class Reporting:
    """A reporter, and a group in the API server that it knows."""

    reporter: PodGroupReporter
    api: ApiServer
    client: KubeClient
    patches: list[dict[str, Any]]

    async def written(self) -> dict[str, Any]:
        """The condition of the group once all is written; empty if there is none."""
        await self.reporter.pool.drained()
        found: PodGroup = await verbs.get(self.client, KINDS["PodGroup"], "gang", namespace="default")
        conditions = found.status.conditions or ()
        return {} if not conditions else msgspec.to_builtins(conditions[0])

    async def show(self) -> None:
        """Let the reporter know the group as it is."""
        found: PodGroup = await verbs.get(self.client, KINDS["PodGroup"], "gang", namespace="default")
        self.reporter.object_cache.put("PodGroup", "gang", "default", found)

    def events(self) -> list[str]:
        stored = self.api.store.collection("events").objects.values()
        return [one.fields["message"] for one in stored]


@pytest.fixture
async def reporting(api: ApiServer, client: KubeClient, store: Store, nursery: trio.Nursery) -> Reporting:
    body = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    body |= msgspec.to_builtins(pod_group("gang", min_count=3))
    body["metadata"].pop("uid")
    await verbs.create(client, KINDS["PodGroup"], msgspec.json.encode(body), namespace="default")
    cache, pool = ObjectCache(), WorkPool(2)
    cache.add_kind("PodGroup")
    recorder = EventRecorder(client=client, hostname="h", wall_clock=api.now, random=Random(0))
    reporter = PodGroupReporter(
        served=ServedVersions(client), pool=pool, recorder=recorder, object_cache=cache, wall_clock=api.now
    )
    patches: list[dict[str, Any]] = []
    api.store.collection("podgroups.scheduling.k8s.io").listen(lambda change: patches.append(change.current.fields))
    nursery.start_soon(pool.run)
    nursery.start_soon(recorder.run)
    made = Reporting(reporter, api, client, patches)
    await made.show()
    return made


async def test_the_condition_says_what_became_of_the_group(reporting: Reporting) -> None:
    reporting.reporter.report(KEY, REFUSED)
    condition = await reporting.written()
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "pod group is unschedulable"
    assert condition["observedGeneration"] == 1
    reporting.reporter.report(KEY, GroupResult(other_pod_failed(failure("broken"))))
    condition = await reporting.written()
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == "failed to schedule other pod from a pod group: broken"
    reporting.reporter.report(KEY, SCHEDULED)
    assert (await reporting.written())["reason"] == "Scheduled"


async def test_what_is_written_already_is_not_written_again(reporting: Reporting) -> None:
    for _ in range(3):
        reporting.reporter.report(KEY, REFUSED)
        await reporting.written()
        await reporting.show()
    assert len(reporting.patches) == 1


async def test_a_group_that_was_scheduled_once_stays_so(reporting: Reporting) -> None:
    reporting.reporter.report(KEY, SCHEDULED)
    await reporting.written()
    for shown in (False, True):  # before the watch shows it, and after
        if shown:
            await reporting.show()
        reporting.reporter.report(KEY, REFUSED)
        assert (await reporting.written())["status"] == "True"


async def test_the_time_of_the_transition_changes_with_the_status_only(
    reporting: Reporting, autojump_clock: MockClock
) -> None:
    reporting.reporter.report(KEY, REFUSED)
    before = (await reporting.written())["lastTransitionTime"]
    await reporting.show()
    await trio.sleep(60)
    reporting.reporter.report(KEY, GroupResult(group_unschedulable("still")))
    assert (await reporting.written())["lastTransitionTime"] == before
    await reporting.show()
    reporting.reporter.report(KEY, SCHEDULED)
    assert (await reporting.written())["lastTransitionTime"] > before


async def test_an_api_server_that_fails_for_a_moment_is_tried_again(
    reporting: Reporting, autojump_clock: MockClock
) -> None:
    reporting.api.faults.fail_next(2, verb="patch", resource="podgroups")
    reporting.reporter.report(KEY, REFUSED)
    assert (await reporting.written())["status"] == "False"


async def test_a_patch_that_is_refused_costs_itself_only(
    reporting: Reporting, caplog: pytest.LogCaptureFixture
) -> None:
    reporting.api.faults.fail_next(1, verb="patch", resource="podgroups", code=403, reason="Forbidden", message="no")
    reporting.reporter.report(KEY, REFUSED)
    assert await reporting.written() == {}
    assert "Failed to update PodGroup status" in caplog.text
    reporting.reporter.report(KEY, REFUSED)
    assert (await reporting.written())["status"] == "False"


async def test_a_group_that_is_gone_is_no_failure(reporting: Reporting) -> None:
    reporting.reporter.report("default/unknown", REFUSED)
    reporting.reporter.explain("default/unknown", "why", controller="c")
    assert reporting.reporter.min_count("default/unknown") is None
    assert reporting.reporter.min_count(KEY) == 3
    await verbs.patch(
        reporting.client, KINDS["PodGroup"], "gang", b'{"metadata":{"finalizers":null}}', namespace="default"
    )
    await verbs.delete(reporting.client, KINDS["PodGroup"], "gang", namespace="default")
    reporting.reporter.report(KEY, REFUSED)
    await reporting.reporter.pool.drained()


async def test_an_explanation_is_given_once_until_it_changes_or_the_group_was_scheduled(reporting: Reporting) -> None:
    for note in ("one", "one", "two", "one"):
        reporting.reporter.explain(KEY, note, controller="default-scheduler")
    reporting.reporter.scheduled(KEY)
    reporting.reporter.explain(KEY, "one", controller="default-scheduler")
    await reporting.reporter.recorder.drained()
    assert sorted(reporting.events()) == ["one", "one", "one", "two"]
    first = next(iter(reporting.api.store.collection("events").objects.values())).fields
    assert first["involvedObject"]["kind"] == "PodGroup"
    assert (first["reason"], first["type"]) == ("FailedScheduling", "Warning")
