import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator import ApiServer
from trio_sched.simulator.manifests.arrivals import ARRIVE_SECONDS, split_arrivals
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError


def config_map(name: str, arrives: str | None = None) -> Manifest:
    annotations = {} if arrives is None else {"annotations": {ARRIVE_SECONDS: arrives}}
    metadata = {"name": name, "namespace": "default", **annotations}
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def names(server: ApiServer) -> set[str]:
    return {stored.fields["metadata"]["name"] for stored in server.store.collection("configmaps").objects.values()}


async def test_objects_are_created_at_their_arrival_time(server: ApiServer, autojump_clock: MockClock) -> None:
    manifests = [config_map("late", "60"), config_map("first"), config_map("soon", "2.5"), config_map("also", "60")]
    there, arrivals = split_arrivals(manifests)
    assert [one.fields["metadata"]["name"] for one in there] == ["first"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrivals.run, server)
        await trio.sleep(2)
        assert names(server) == set()
        await trio.sleep(1)
        assert names(server) == {"soon"}
        assert len(arrivals.waiting) == 2
        await trio.sleep(58)
        assert names(server) == {"soon", "late", "also"}
    assert arrivals.waiting == []


@pytest.mark.parametrize("text", ["tomorrow", "-1", "inf", ""])
def test_an_annotation_that_is_no_number_of_seconds_is_named(text: str) -> None:
    with pytest.raises(
        ManifestError, match=f"ConfigMap default/c: .*arrive-seconds]: must be a number of seconds, not '{text}'"
    ):
        split_arrivals([config_map("c", text)])
