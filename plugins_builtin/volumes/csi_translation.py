"""Translates volumes of in-tree drivers to the CSI drivers that have replaced these.

Source: csi-translation-lib of Kubernetes 1.36, as far as the scheduler uses it: driver names, volume handles, and the
zones in the node affinity of volumes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Final

from attrs import frozen

from trio_sched.plugin_api import (
    CSINode,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
    replace_fields,
)

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONES_SEPARATOR: Final = "__"

_UNSPECIFIED = "UNSPECIFIED"
_AWS_ID = re.compile(r"vol-[^/]*", re.ASCII)


class TranslationError(ValueError):
    """A volume of an in-tree driver that cannot be translated."""


@frozen
class InTreePlugin:
    """A driver that was part of Kubernetes.

    Attributes:
        name: in storage classes and in annotations of CSINodes.
        driver: the CSI driver that has replaced it.
        migrated: whether the scheduler counts its volumes as those of *driver*.
        zone_key: the node label in which *driver* publishes the zone; "" if it does not translate node affinity.
    """

    name: str
    driver: str
    migrated: bool = True
    zone_key: str = ""


AWS_EBS: Final = InTreePlugin("kubernetes.io/aws-ebs", "ebs.csi.aws.com", zone_key="topology.ebs.csi.aws.com/zone")
GCE_PD: Final = InTreePlugin("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", zone_key="topology.gke.io/zone")
CINDER: Final = InTreePlugin(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", zone_key="topology.cinder.csi.openstack.org/zone"
)
AZURE_DISK: Final = InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com")
AZURE_FILE: Final = InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", migrated=False)
VSPHERE: Final = InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", migrated=False)
PORTWORX: Final = InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com")

PLUGINS: Final = {
    plugin.name: plugin for plugin in (AWS_EBS, GCE_PD, CINDER, AZURE_DISK, AZURE_FILE, VSPHERE, PORTWORX)
}


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree driver of a pod's volume or a PersistentVolume; None if it is of no in-tree driver."""
    if source.aws_elastic_block_store is not None:
        return AWS_EBS
    if source.gce_persistent_disk is not None:
        return GCE_PD
    if source.cinder is not None:
        return CINDER
    if source.azure_disk is not None:
        return AZURE_DISK
    if source.azure_file is not None:
        return AZURE_FILE
    if source.vsphere_volume is not None:
        return VSPHERE
    if source.portworx_volume is not None:
        return PORTWORX
    return None


def inline_handle(volume: Volume) -> str:
    """The CSI volume handle of an in-tree volume that is part of a pod spec.

    Raises:
        TranslationError: it has none.
    """
    if volume.gce_persistent_disk is not None:
        return _gce_handle(volume.gce_persistent_disk.pd_name, [])
    return _handle(volume)


def volume_handle(volume: PersistentVolume) -> str:
    """The CSI volume handle of an in-tree PersistentVolume.

    Raises:
        TranslationError: it has none.
    """
    disk = volume.spec.gce_persistent_disk
    if disk is None:
        return _handle(volume.spec)
    labels = volume.metadata.labels or {}
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONES_SEPARATOR)
    return _gce_handle(disk.pd_name, zones)


def _handle(source: Volume | PersistentVolumeSpec) -> str:
    if source.aws_elastic_block_store is not None:
        return _aws_id(source.aws_elastic_block_store.volume_id)
    if source.azure_disk is not None:
        return source.azure_disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    return source.portworx_volume.volume_id if source.portworx_volume is not None else ""


def _aws_id(volume_id: str) -> str:
    """``vol-…``, given as that or as ``aws://<zone>/vol-…``."""
    if not volume_id.startswith("aws://"):
        return volume_id
    _zone, _slash, path = volume_id.removeprefix("aws://").partition("/")
    found = path.strip("/")
    if not _AWS_ID.fullmatch(found):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return found


def _gce_handle(name: str, zones: Sequence[str]) -> str:
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{name}"
    zone = zones[0] if zones and zones[0] else _UNSPECIFIED
    return f"projects/{_UNSPECIFIED}/zones/{zone}/disks/{name}"


def _gce_region(zones: Sequence[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{found}]"
        )
    return regions.pop()


def is_migrated_on(plugin: InTreePlugin, csi_node: CSINode | None) -> bool:
    """Whether the node's kubelet uses the CSI driver for volumes of *plugin*."""
    if csi_node is None:
        return False
    return plugin.name in (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "").split(",")


def translated_affinity(volume: PersistentVolume, plugin: InTreePlugin) -> NodeSelector | None:
    """The required node affinity of *volume* with the label keys of the CSI driver.

    Raises:
        TranslationError: the volume cannot be translated.
    """
    volume_handle(volume)
    affinity = volume.required_affinity
    if not plugin.zone_key:
        return affinity
    labels = volume.metadata.labels or {}
    zone, region = _topology_keys(affinity, labels.keys())
    if _values(affinity, zone):
        affinity = _renamed(affinity, zone, plugin.zone_key)
    elif zone in labels:
        zones = sorted({name.strip() for name in labels[zone].split(ZONES_SEPARATOR)} - {""})
        if zones:
            affinity = _with_zones(affinity, plugin.zone_key, tuple(zones))
    if region == BETA_REGION and _values(affinity, region):
        affinity = _renamed(affinity, region, REGION)
    return affinity


def _topology_keys(affinity: NodeSelector | None, labels: Container[str]) -> tuple[str, str]:
    """The keys of zone and region that the volume uses: in its affinity, else in its labels; beta keys last."""
    used = {requirement.key for term in _terms(affinity) for requirement in term.match_expressions or ()}
    candidates: tuple[Container[str], ...] = (used, labels)
    for keys in candidates:
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(affinity: NodeSelector | None) -> tuple[NodeSelectorTerm, ...]:
    return () if affinity is None else affinity.node_selector_terms or ()


def _values(affinity: NodeSelector | None, key: str) -> set[str]:
    return {
        value
        for term in _terms(affinity)
        for requirement in term.match_expressions or ()
        if requirement.key == key
        for value in requirement.values or ()
    }


def _renamed(affinity: NodeSelector | None, old_key: str, new_key: str) -> NodeSelector:
    return NodeSelector(
        node_selector_terms=tuple(
            replace_fields(
                term,
                match_expressions=tuple(
                    replace_fields(requirement, key=new_key) if requirement.key == old_key else requirement
                    for requirement in term.match_expressions or ()
                ),
            )
            for term in _terms(affinity)
        )
    )


def _with_zones(affinity: NodeSelector | None, key: str, zones: tuple[str, ...]) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=key, operator="In", values=zones)
    return NodeSelector(
        node_selector_terms=tuple(
            replace_fields(term, match_expressions=(*(term.match_expressions or ()), requirement))
            for term in _terms(affinity) or (NodeSelectorTerm(),)
        )
    )
