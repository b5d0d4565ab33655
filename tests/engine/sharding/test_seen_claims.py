"""What has to be seen of the claims of a pod before the owner of a node binds it."""

from typing import Any

import pytest

from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.sharding.seen_claims import first_unseen
from trio_sched.objects.resource.resource_claim import DeviceRequestAllocationResult
from trio_sched.objects.storage.volume import EphemeralVolumeSource, Volume
from trio_sched.testing import persistent_volume, persistent_volume_claim, pod, resource_claim

KINDS = ("PersistentVolumeClaim", "PersistentVolume", "ResourceClaim")
WITH_VOLUME = pod("p", volumes=["a"])
WITH_EPHEMERAL = pod("p", volumes=[Volume(name="v", ephemeral=EphemeralVolumeSource())])
WITH_DEVICE = pod("p", uid="uid-of-p", claims=["a"])
DEVICE = DeviceRequestAllocationResult(request="gpu", driver="d", pool="n", device="gpu-0")


@pytest.mark.parametrize(
    ("one", "objects", "expected"),
    [
        (pod("p"), [], None),
        (WITH_VOLUME, [], ("PersistentVolumeClaim", "default", "a")),
        (WITH_VOLUME, [persistent_volume_claim("a")], ("PersistentVolumeClaim", "default", "a")),
        (WITH_VOLUME, [persistent_volume_claim("a", volume="v")], ("PersistentVolume", "", "v")),
        (WITH_VOLUME, [persistent_volume_claim("a", volume="v"), persistent_volume("v")], None),
        (WITH_EPHEMERAL, [], ("PersistentVolumeClaim", "default", "p-v")),
        (WITH_DEVICE, [], ("ResourceClaim", "default", "a")),
        (WITH_DEVICE, [resource_claim("a")], ("ResourceClaim", "default", "a")),
        (WITH_DEVICE, [resource_claim("a", allocated=[DEVICE])], ("ResourceClaim", "default", "a")),
        (WITH_DEVICE, [resource_claim("a", allocated=[DEVICE], reserved_for=["uid-of-p"])], None),
    ],
)
def test_everything_is_seen_that_is_given_to_a_pod(one: Any, objects: list[Any], expected: Any) -> None:
    cache = ObjectCache()
    for kind in KINDS:
        cache.add_kind(kind)
    for each in objects:
        cache.put(type(each).__name__, each.metadata.name, each.metadata.namespace, each)
    assert first_unseen(one, cache) == expected


def test_kinds_that_are_not_watched_have_not_to_be_seen() -> None:
    assert first_unseen(WITH_VOLUME, ObjectCache()) is None
