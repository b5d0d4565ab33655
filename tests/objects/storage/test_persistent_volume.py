import msgspec
import pytest

from trio_sched.objects.copies import replace_fields
from trio_sched.objects.storage.persistent_volume import PersistentVolume, PersistentVolumeClaim
from trio_sched.objects.storage.storage import CSIDriver, CSINode
from trio_sched.objects.storage.volume import Volume

OLD = "volume.beta.kubernetes.io/storage-class"


@pytest.mark.parametrize(
    ("annotations", "field", "name"),
    [(None, None, ""), (None, "new", "new"), ({OLD: "old"}, "new", "old"), ({OLD: ""}, "new", "")],
)
@pytest.mark.parametrize("kind", [PersistentVolume, PersistentVolumeClaim])
def test_the_old_annotation_for_the_class_counts_before_the_field(
    kind: type[PersistentVolume], annotations: dict[str, str] | None, field: str | None, name: str
) -> None:
    metadata = {} if annotations is None else {"annotations": annotations}
    spec = {} if field is None else {"storageClassName": field}
    assert msgspec.convert({"metadata": metadata, "spec": spec}, kind).storage_class == name


def test_handles_are_read_as_the_wire_spells_them() -> None:
    volume = msgspec.json.decode(
        b'{"spec": {"csi": {"driver": "d", "volumeHandle": "h"}, "awsElasticBlockStore": {"volumeID": "vol-1"},'
        b' "azureDisk": {"diskURI": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": []}}}}',
        type=PersistentVolume,
    )
    assert volume.spec.csi is not None
    assert volume.spec.csi.volume_handle == "h"
    assert volume.spec.aws_elastic_block_store is not None
    assert volume.spec.aws_elastic_block_store.volume_id == "vol-1"
    assert volume.spec.azure_disk is not None
    assert volume.spec.azure_disk.disk_uri == "/disk"
    assert volume.required_affinity is not None
    assert PersistentVolume().required_affinity is None
    disk = msgspec.json.decode(b'{"name": "d", "gcePersistentDisk": {"pdName": "x", "fsType": "ext4"}}', type=Volume)
    assert disk.gce_persistent_disk is not None
    assert disk.gce_persistent_disk.pd_name == "x"


def test_what_is_not_said_is_told_from_no() -> None:
    assert msgspec.json.decode(b'{"spec": {"drivers": null}}', type=CSINode).spec.drivers is None
    assert msgspec.json.decode(b'{"spec": {}}', type=CSIDriver).spec.storage_capacity is None
    assert msgspec.json.decode(b'{"spec": {"storageCapacity": false}}', type=CSIDriver).spec.storage_capacity is False


def test_copies_leave_the_original_alone() -> None:
    claim = msgspec.convert({"metadata": {"name": "a", "namespace": "n"}}, PersistentVolumeClaim)
    other = replace_fields(claim, metadata=replace_fields(claim.metadata, name="b"))
    assert (claim.key, other.key) == ("n/a", "n/b")
