from msgspec.structs import replace

from plugins_builtin.volumes.assume_cache import AssumeCache
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.plugin_api import PersistentVolumeClaim
from trio_sched.testing import FakeHandle


def claim(version: str, name: str = "c") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="ns", resource_version=version))


def assumed(handle: FakeHandle, one: PersistentVolumeClaim) -> AssumeCache[PersistentVolumeClaim]:
    cache: AssumeCache[PersistentVolumeClaim] = AssumeCache("PersistentVolumeClaim", handle)
    cache.assume(one)
    return cache


def test_restoring_forgets_the_assumed_version() -> None:
    handle = FakeHandle(known_objects={"PersistentVolumeClaim": [claim("1")]})
    cache = assumed(handle, replace(claim("1"), spec=replace(claim("1").spec, volume_name="v")))
    assert cache.get("c", "ns") != claim("1")
    cache.restore(claim("2"))  # a later version, that of another pod
    assert cache.get("c", "ns") != claim("1")
    cache.restore(claim("1"))
    assert cache.get("c", "ns") == claim("1")


def test_nothing_is_left_of_an_object_that_is_gone_or_was_written() -> None:
    handle = FakeHandle(known_objects={"PersistentVolumeClaim": [claim("1")]})
    cache = assumed(handle, claim("1"))
    handle.known_objects["PersistentVolumeClaim"] = []
    cache.restore(claim("2"))  # what the API server returned for the patch
    assert cache._assumed == {}
    handle.known_objects["PersistentVolumeClaim"] = [claim("1")]
    cache.assume(claim("1"))
    handle.known_objects["PersistentVolumeClaim"] = [claim("2")]
    cache.restore(claim("2"))
    assert cache._assumed == {}
