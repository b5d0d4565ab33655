from random import Random
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from msgspec.structs import replace
from trio.testing import MockClock

from trio_sched.config.schema import LeaderElection
from trio_sched.daemon.clients import WritePermit
from trio_sched.daemon.leader_election import LeaderElectionLost, LeaderElector
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.writes.scheduler_events import LeaseEvent
from trio_sched.kube_client import leases
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import WriteNotPermitted
from trio_sched.objects.lease import LeaseSpec
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.simulator import ApiServer
from trio_sched.simulator.storage.object_store import Change as StoreChange

KEY = "kube-system/kube-scheduler"


@define(eq=False)
class Draws(Random):
    """A random generator that always draws the same."""

    value: float

    def random(self) -> float:
        return self.value


@define(eq=False)
class Election:
    """Electors of one lease, and every version of it."""

    api: ApiServer
    client: KubeClient
    settings: LeaderElection = field(factory=LeaderElection)
    written: list[tuple[float, dict[str, Any]]] = field(factory=list)
    recorded: list[LeaseEvent] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        began = trio.current_time()

        def see(change: StoreChange) -> None:
            self.written.append((trio.current_time() - began, change.current.fields["spec"]))

        self.api.store.collection("leases.coordination.k8s.io").listen(see)

    def elector(self, identity: str = "me", *, draw: float = 0.0) -> LeaderElector:
        return LeaderElector(
            client=self.client,
            settings=self.settings,
            identity=identity,
            component="default-scheduler",
            wall_clock=self.api.now,
            random=Draws(draw),
            record_event=self.recorded.append,
            metrics=MetricRecorder(),
            permit=WritePermit("kube-system/kube-scheduler"),
        )

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.recorded]

    @property
    def spec(self) -> dict[str, Any]:
        stored = self.api.store.get("leases.coordination.k8s.io", KEY)
        assert stored is not None
        return stored.fields["spec"]

    @property
    def moments(self) -> list[float]:
        return [round(moment, 3) for moment, _spec in self.written]

    async def put(self, holder: str, *, seconds: int = 15) -> None:
        spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=seconds, lease_transitions=4)
        await leases.create_lease(self.client, namespace="kube-system", name="kube-scheduler", spec=spec)


@pytest.fixture
async def election(api: ApiServer, client: KubeClient) -> Election:
    return Election(api, client)


def take_over(election: Election, holder: str) -> None:
    store = election.api.store
    stored = store.get("leases.coordination.k8s.io", KEY)
    assert stored is not None
    fields = {**stored.fields, "metadata": dict(stored.fields["metadata"])}
    fields["spec"] = {**stored.fields["spec"], "holderIdentity": holder}
    store.replace("leases.coordination.k8s.io", stored, fields)


async def test_a_lease_that_does_not_exist_is_created_and_then_renewed_every_other_second(
    election: Election, autojump_clock: MockClock
) -> None:
    stop = trio.Event()

    async def work() -> None:
        await trio.sleep(5)

    await election.elector().lead(work, stop)
    assert election.moments == [0, 2, 4, 5]  # a renewal at 0 s changes nothing, so it makes no version
    assert election.written[0][1] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    renewed = election.written[2][1]
    assert (renewed["acquireTime"], renewed["renewTime"]) == (
        "2026-01-01T00:00:00.000000Z",
        "2026-01-01T00:00:04.000000Z",
    )
    assert election.written[3][1] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-01-01T00:00:05.000000Z",
        "renewTime": "2026-01-01T00:00:05.000000Z",
        "leaseTransitions": 0,
    }
    assert election.notes == ["me became leader", "me stopped leading"]


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
async def test_a_lease_that_is_not_renewed_is_acquired_the_moment_it_expires(
    election: Election, autojump_clock: MockClock, draw: float
) -> None:
    """Whatever the pause between two retries would have been."""
    await election.put("other")
    await election.elector(draw=draw).acquire()
    assert election.moments == [0, 15]
    assert (election.spec["holderIdentity"], election.spec["leaseTransitions"]) == ("me", 5)


async def test_a_lease_expires_counted_from_its_last_renewal(election: Election, autojump_clock: MockClock) -> None:
    living = trio.CancelScope()

    async def live() -> None:
        with living:
            await election.elector("leader").lead(trio.sleep_forever, trio.Event())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(live)
        await trio.sleep(0.5)
        nursery.start_soon(election.elector("follower", draw=0.9).acquire)
        await trio.sleep(4.5)
        election.api.faults.set_latency(1000, verb="update", resource="leases")
        living.cancel()
        await trio.sleep(1)
        election.api.faults.clear()
    # The last renewal was at 4 s, and the holder was cut off and could not release the lease.
    assert election.moments[-1] == 19
    assert election.spec["holderIdentity"] == "follower"


async def test_a_lease_released_while_waiting_is_acquired_at_the_next_retry(
    election: Election, autojump_clock: MockClock
) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(election.elector("leader").lead, stop.wait, stop)
        await trio.sleep(0.5)
        nursery.start_soon(election.elector("follower", draw=0.9).acquire)
        await trio.sleep(6)
        stop.set()
    assert election.moments[-1] == 6.5
    assert election.spec["holderIdentity"] == "follower"


async def test_a_renewed_lease_is_not_acquired(election: Election, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        leader, follower = election.elector("leader"), election.elector("follower")
        stop = trio.Event()
        nursery.start_soon(leader.lead, trio.sleep_forever, stop)
        await trio.sleep(1)
        with trio.move_on_after(300):
            await follower.acquire()
            pytest.fail("there are two leaders")
        nursery.cancel_scope.cancel()


async def test_a_released_lease_is_acquired_at_once(election: Election, autojump_clock: MockClock) -> None:
    await election.put("")
    await election.elector().acquire()
    assert election.moments == [0, 0]
    assert election.spec["leaseTransitions"] == 5


async def test_of_two_simultaneous_acquisitions_one_fails(election: Election, autojump_clock: MockClock) -> None:
    won: list[str] = []

    async def run(name: str) -> None:
        await election.elector(name).acquire()
        won.append(name)

    with trio.move_on_after(14):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, "a")
            nursery.start_soon(run, "b")
    assert len(won) == 1
    assert election.spec["holderIdentity"] == won[0]


async def test_a_stop_while_waiting_ends_the_waiting_and_writes_nothing(
    election: Election, autojump_clock: MockClock
) -> None:
    await election.put("other", seconds=600)
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(election.elector().lead, trio.sleep_forever, stop)
        await trio.sleep(5.5)
        stop.set()
    assert election.moments == [0]
    assert election.notes == []


async def test_renewal_failures_shorter_than_the_renew_deadline_keep_the_lease(
    election: Election, autojump_clock: MockClock
) -> None:
    async def work() -> None:
        await trio.sleep(1)
        election.api.stop()
        await trio.sleep(9)
        election.api.resume()
        await trio.sleep(5)

    await election.elector().lead(work, trio.Event())
    # The renewal due at 2 s succeeds at 10 s, the last try before its deadline at 12 s.
    assert election.moments == [0, 10, 12, 14, 15]


async def test_the_lease_is_lost_after_the_renew_deadline_without_renewal(
    election: Election, autojump_clock: MockClock
) -> None:
    ended: list[float] = []
    began = trio.current_time()

    async def work() -> None:
        try:
            await trio.sleep(1)
            election.api.stop()
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time() - began)

    with pytest.RaisesGroup(LeaderElectionLost, flatten_subgroups=True):
        await election.elector().lead(work, trio.Event())
    assert ended == [pytest.approx(12.0)]
    assert election.notes == ["me became leader", "me stopped leading"]


async def test_the_lease_is_lost_if_the_server_does_not_answer(election: Election, autojump_clock: MockClock) -> None:
    began = trio.current_time()
    election.settings = evolve(election.settings, renew_deadline_ns=5 * SECOND_NS)

    async def work() -> None:
        election.api.faults.set_latency(1000, resource="leases")
        await trio.sleep_forever()

    with pytest.RaisesGroup(LeaderElectionLost, flatten_subgroups=True):
        await election.elector().lead(work, trio.Event())
    assert trio.current_time() - began <= 7.0


async def test_the_lease_is_lost_as_soon_as_another_candidate_is_seen_to_hold_it(
    election: Election, autojump_clock: MockClock
) -> None:
    began = trio.current_time()

    async def work() -> None:
        await trio.sleep(1)
        take_over(election, "other")
        await trio.sleep_forever()

    with pytest.RaisesGroup(
        pytest.RaisesExc(LeaderElectionLost, match="kube-system/kube-scheduler is held by other"),
        flatten_subgroups=True,
    ):
        await election.elector().lead(work, trio.Event())
    assert trio.current_time() - began == pytest.approx(2.0)  # at the next renewal, not after the renew deadline
    assert election.spec["holderIdentity"] == "other"


async def test_a_lost_reply_to_a_renewal_costs_one_more_read(election: Election, autojump_clock: MockClock) -> None:
    async def work() -> None:
        await trio.sleep(1)
        election.api.faults.drop_next(1, verb="update", resource="leases")
        await trio.sleep(4)

    await election.elector().lead(work, trio.Event())
    assert election.moments == [0, 2, 4, 5]


async def test_a_deleted_lease_is_created_again(election: Election, autojump_clock: MockClock) -> None:
    async def work() -> None:
        await trio.sleep(1)
        store = election.api.store
        store.delete("leases.coordination.k8s.io", store.get("leases.coordination.k8s.io", KEY))
        await trio.sleep(2)
        assert election.spec["holderIdentity"] == "me"
        assert election.spec["leaseTransitions"] == 0

    await election.elector().lead(work, trio.Event())


async def test_the_lease_is_released_when_the_work_raises(election: Election, autojump_clock: MockClock) -> None:
    async def work() -> None:
        await trio.sleep(1)
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        await election.elector().lead(work, trio.Event())
    assert election.spec["holderIdentity"] == ""


async def test_the_lease_of_another_holder_is_not_released(election: Election, autojump_clock: MockClock) -> None:
    async def work() -> None:
        await trio.sleep(1)
        take_over(election, "thief")

    await election.elector().lead(work, trio.Event())
    assert election.spec["holderIdentity"] == "thief"


async def test_releasing_the_lease_is_bounded_in_time(
    election: Election, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    began = trio.current_time()

    async def work() -> None:
        await trio.sleep(1)
        election.api.faults.set_latency(1000, resource="leases")

    await election.elector().lead(work, trio.Event())
    assert trio.current_time() - began == pytest.approx(11.0)
    assert "lease not released in 10 s; a follower must wait for it to expire" in caplog.text


async def test_names_and_durations_come_from_the_configuration(election: Election, autojump_clock: MockClock) -> None:
    election.settings = evolve(
        election.settings,
        resource_name="mine",
        resource_namespace="default",
        lease_duration_ns=60 * SECOND_NS,
        retry_period_ns=7 * SECOND_NS,
    )

    async def work() -> None:
        await trio.sleep(15)

    elector = election.elector()
    await elector.lead(work, trio.Event())
    assert elector.lock == "default/mine"
    assert election.written[0][1]["leaseDurationSeconds"] == 60
    assert election.moments == [0, 7, 14, 15]


@pytest.mark.parametrize("method", ["create", "update"])
async def test_a_lease_that_the_server_returns_with_another_holder_was_not_acquired(
    method: str, election: Election, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    if method == "update":
        await election.put("")
    real = getattr(leases, f"{method}_lease")

    async def wrong(*args: Any, **kwargs: Any) -> leases.StoredLease:
        stored = await real(*args, **kwargs)
        lease = replace(stored.lease, spec=replace(stored.lease.spec, holder_identity="somebody"))
        return evolve(stored, lease=lease, record=leases.record_of(lease.spec))

    monkeypatch.setattr(leases, f"{method}_lease", wrong)
    stop = trio.Event()
    has_led = False

    async def work() -> None:
        nonlocal has_led
        has_led = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(election.elector().lead, work, stop)
        await trio.sleep(1)
        assert 'the response names the holder "somebody"' in caplog.text
        assert "Successfully acquired lease" not in caplog.text
        assert not has_led
        monkeypatch.undo()
        await trio.sleep(60)
        assert has_led


async def test_events_refer_to_the_lease_as_it_is_stored(election: Election, autojump_clock: MockClock) -> None:
    async def work() -> None:
        await trio.sleep(3)

    await election.elector().lead(work, trio.Event())
    stored = election.api.store.get("leases.coordination.k8s.io", KEY)
    assert stored is not None
    began, ended = election.recorded
    assert began.uid == ended.uid == stored.fields["metadata"]["uid"] != ""
    versions = [int(event.resource_version) for event in election.recorded]
    assert 0 < versions[0] < versions[1] <= int(stored.fields["metadata"]["resourceVersion"])


async def test_a_leader_that_was_stopped_for_longer_than_the_renew_deadline_writes_nothing(
    election: Election, mock_clock: MockClock
) -> None:
    elector = election.elector()
    with pytest.raises(WriteNotPermitted, match="kube-system/kube-scheduler is not held"):
        elector.permit.check()
    await elector.acquire()
    elector.permit.check()
    mock_clock.jump(9)
    elector.permit.check()
    mock_clock.jump(2)  # nothing has run meanwhile
    with pytest.raises(WriteNotPermitted, match="kube-system/kube-scheduler was not renewed in time"):
        elector.permit.check()


async def test_a_lease_that_another_candidate_has_taken_permits_no_writes(
    election: Election, autojump_clock: MockClock
) -> None:
    elector = election.elector()
    async with trio.open_nursery() as nursery:
        stop = trio.Event()

        async def lead() -> None:
            with pytest.RaisesGroup(LeaderElectionLost):
                await elector.lead(trio.sleep_forever, stop)

        nursery.start_soon(lead)
        await trio.sleep(3)
        elector.permit.check()
        take_over(election, "other")
    with pytest.raises(WriteNotPermitted):
        elector.permit.check()
