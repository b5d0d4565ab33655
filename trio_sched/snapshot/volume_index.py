"""Which pods have volumes that matter to scheduling, and how many use a claim: sparse, because few pods have any."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from trio_sched.objects.pod import Pod
from trio_sched.objects.storage.volume import Volume

H = TypeVar("H", bound=Hashable)


def is_disk(volume: Volume) -> bool:
    """Whether *volume* is a claim, ephemeral, or a disk: what nodes have limits for; config maps and such are not."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.azure_file is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
        or volume.vsphere_volume is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


class VolumeIndex:
    """Row → its pods with disks; (namespace, claim) → how many volumes of pods are that claim."""

    __slots__ = ("_claims", "_disks", "_ephemeral", "_rows")

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, int]] = {}
        self._disks: dict[int, int] = {}
        self._ephemeral: dict[int, int] = {}
        self._claims: dict[tuple[str, str], int] = {}

    @property
    def rows(self) -> Mapping[int, Mapping[str, int]]:
        """Rows with at least one such pod → UIDs of those pods, in the order they came → how many disks each has."""
        return self._rows

    @property
    def disks(self) -> Mapping[int, int]:
        """Row → how many disks its pods have, where there are any."""
        return self._disks

    @property
    def ephemeral(self) -> Mapping[int, int]:
        """Row → how many ephemeral volumes its pods have, where there are any."""
        return self._ephemeral

    def users(self, namespace: str, claim: str) -> int:
        """How many volumes of pods are the claim; claims made for ephemeral volumes do not count."""
        return self._claims.get((namespace, claim), 0)

    def add(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* now."""
        disks = sum(map(is_disk, pod.spec.volumes or ()))
        if disks:
            self._rows.setdefault(row, {})[pod.uid] = disks
            _add(self._disks, row, disks)
            self._count(row, pod, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """*pod* is on *row* no longer."""
        here = self._rows.get(row)
        if here is None or pod.uid not in here:
            return
        _add(self._disks, row, -here.pop(pod.uid))
        if not here:
            del self._rows[row]
        self._count(row, pod, -1)

    def move(self, old_row: int, new_row: int) -> None:
        """The node at *old_row* is at *new_row* now."""
        if old_row in self._rows:
            self._rows[new_row] = self._rows.pop(old_row)
        for counts in (self._disks, self._ephemeral):
            if old_row in counts:
                counts[new_row] = counts.pop(old_row)

    def copy_row(self, source: VolumeIndex, row: int, target: int) -> None:
        """Replace what *target* holds by what *row* holds in *source*.

        Users of claims are those in the whole cluster, so they are not counted again where only some rows are copied:
        `users` of a copy counts only what was added and removed there since.
        """
        for mine, theirs in ((self._disks, source._disks), (self._ephemeral, source._ephemeral)):
            if row in theirs:
                mine[target] = theirs[row]
            else:
                mine.pop(target, None)
        if row in source._rows:
            self._rows[target] = source._rows[row].copy()
        else:
            self._rows.pop(target, None)

    def _count(self, row: int, pod: Pod, sign: int) -> None:
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                _add(self._claims, (pod.namespace, volume.persistent_volume_claim.claim_name), sign)
            elif volume.ephemeral is not None:
                _add(self._ephemeral, row, sign)


def _add(counts: dict[H, int], key: H, more: int) -> None:
    count = counts.get(key, 0) + more
    if count:
        counts[key] = count
    else:
        del counts[key]
