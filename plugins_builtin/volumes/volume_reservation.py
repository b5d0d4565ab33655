"""Assumes the volumes of a pod, writes the bindings, and waits until the volume controller has completed them.

Source: AssumePodVolumes and BindPodVolumes of kube-scheduler's volume binder, its texts included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attrs import define, field

from plugins_builtin.volumes.assume_cache import AssumeCache
from plugins_builtin.volumes.csi_translation import (
    TranslationError,
    in_tree_plugin,
    is_migrated_on,
    translated_affinity,
)
from plugins_builtin.volumes.pod_volumes import PodVolumes
from plugins_builtin.volumes.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    is_fully_bound,
    match_volume_affinity,
    refers_to,
)
from trio_sched.plugin_api import (
    ClaimReference,
    Handle,
    NodeColumns,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    quote,
    replace_fields,
)

RECHECK_SECONDS = 1.0
"""The bindings are checked this often even if the awaited object does not change: the pod or the node can be gone."""


class BindingFailed(Exception):
    """The volumes were not bound; the pod has to be scheduled again."""


class _Awaited(NamedTuple):
    """The object whose next version can complete the binding."""

    kind: str
    name: str
    namespace: str = ""


@define(eq=False)
class Reservation:
    """The assumed volumes and claims of one pod."""

    volumes: AssumeCache[PersistentVolume]
    claims: AssumeCache[PersistentVolumeClaim]
    node_name: str
    static: list[tuple[PersistentVolume, PersistentVolumeClaim]] = field(factory=list)
    """Volumes, each with the claim that it is to be bound to."""
    dynamic: list[PersistentVolumeClaim] = field(factory=list)
    """Claims for which a volume is to be provisioned."""
    patches: dict[tuple[str, str, str], dict[str, Any]] = field(factory=dict)
    """(kind, namespace, name) → the patch to write."""

    def assume(self, found: PodVolumes) -> None:
        """Assume that the pod gets *found*.

        Raises:
            OutOfSync: a volume or claim has changed meanwhile; those assumed before it have to be reverted.
        """
        for volume, claim in found.static_bindings:
            # Compared with the stored volume: what is assumed for another pod with the same claim may never be written.
            assumed, patch = _bound_to(self.volumes.stored(volume.name) or volume, claim)
            if patch:
                self.volumes.assume(assumed)
                self.patches["PersistentVolume", "", volume.name] = patch
            self.static.append((assumed, claim))
        for provision in found.dynamic_provisions:
            claim = provision.claim
            annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE: self.node_name}
            assumed_claim = replace_fields(claim, metadata=replace_fields(claim.metadata, annotations=annotations))
            self.claims.assume(assumed_claim)
            stored = self.claims.stored(claim.name, claim.metadata.namespace) or claim
            if stored.metadata.annotations != annotations:
                patch = {"metadata": {"annotations": {SELECTED_NODE: self.node_name}}}
                self.patches["PersistentVolumeClaim", claim.metadata.namespace, claim.name] = patch
            self.dynamic.append(assumed_claim)

    def revert(self) -> None:
        """Forget the assumed versions."""
        for volume, _claim in self.static:
            self.volumes.restore(volume)
        for claim in self.dynamic:
            self.claims.restore(claim)

    def drop_confirmed(self) -> None:
        """Forget the assumed versions that a watch has shown."""
        for volume, _claim in self.static:
            self.volumes.drop_confirmed(volume.name)
        for claim in self.dynamic:
            self.claims.drop_confirmed(claim.name, claim.metadata.namespace)


def _bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, dict[str, Any] | None]:
    """*volume* pre-bound to *claim*, and the patch that does that; None if it is pre-bound or bound already."""
    patch: dict[str, Any] = {}
    spec, metadata = volume.spec, volume.metadata
    reference = spec.claim_ref
    if reference is None or not refers_to(volume, claim) or reference.uid != claim.metadata.uid:
        wanted = ClaimReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=claim.metadata.namespace,
            name=claim.name,
            uid=claim.metadata.uid,
            resource_version=claim.metadata.resource_version,
        )
        spec = replace_fields(spec, claim_ref=wanted)
        patch["spec"] = {
            "claimRef": {
                "kind": wanted.kind,
                "apiVersion": wanted.api_version,
                "namespace": wanted.namespace,
                "name": wanted.name,
                "uid": wanted.uid,
                "resourceVersion": wanted.resource_version,
            }
        }
    annotations: Mapping[str, str] = metadata.annotations or {}
    if not refers_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        metadata = replace_fields(metadata, annotations={**annotations, BOUND_BY_CONTROLLER: "yes"})
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return replace_fields(volume, spec=spec, metadata=metadata), patch or None


async def bind_volumes(handle: Handle, pod: Pod, reservation: Reservation, timeout_seconds: float) -> None:
    """Write the patches and wait until all claims of the pod are bound.

    Raises:
        BindingFailed: a claim cannot be bound, was not bound in time, or the API server refused (with its text).
    """
    try:
        await _write(handle, reservation)
    except Exception as refused:  # the handle's errors have no common type
        raise BindingFailed(str(refused)) from refused
    deadline = handle.now() + timeout_seconds
    while True:
        try:
            awaited = _check_bindings(handle, pod, reservation)
        except BindingFailed as problem:
            raise BindingFailed(f"binding volumes: {problem}") from problem
        if awaited is None:
            reservation.drop_confirmed()
            return
        remaining_seconds = deadline - handle.now()
        if remaining_seconds <= 0:
            raise BindingFailed("binding volumes: context deadline exceeded")
        await handle.changed(
            awaited.kind,
            awaited.name,
            namespace=awaited.namespace,
            timeout_seconds=min(remaining_seconds, RECHECK_SECONDS),
        )


async def _write(handle: Handle, reservation: Reservation) -> None:
    """Send the patches, volumes first; each is refused if the object is no longer at the version that was assumed."""
    for i, (volume, claim) in enumerate(reservation.static):
        patch = reservation.patches.pop(("PersistentVolume", "", volume.name), None)
        if patch is not None:
            written = await handle.patch("PersistentVolume", volume.name, _with_version(patch, volume))
            reservation.static[i] = (written, claim)
    for i, claim in enumerate(reservation.dynamic):
        namespace = claim.metadata.namespace
        patch = reservation.patches.pop(("PersistentVolumeClaim", namespace, claim.name), None)
        if patch is not None:
            patch = _with_version(patch, claim)
            written = await handle.patch("PersistentVolumeClaim", claim.name, patch, namespace=namespace)
            reservation.dynamic[i] = written


def _with_version(patch: dict[str, Any], one: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    version = {"resourceVersion": one.metadata.resource_version}
    return {**patch, "metadata": {**patch.get("metadata", {}), **version}}


def _check_bindings(handle: Handle, pod: Pod, reservation: Reservation) -> _Awaited | None:
    """Check the claims of the pod as the watches show them.

    Returns:
        None when every claim is bound, else the first object that has to change for that.

    Raises:
        BindingFailed: a claim cannot be bound any more.
    """
    node_name = reservation.node_name
    nodes = handle.nodes
    position = nodes.position(node_name)
    if position is None:
        raise BindingFailed(f"failed to get node {quote(node_name)}: node {quote(node_name)} not found")
    node = nodes.take(slice(position, position + 1))
    known = handle.pending_pod(pod.namespace, pod.name)
    if known is None or known.pod.uid != pod.uid:
        raise BindingFailed(f"pod does not exist any more: pod {quote(pod.name)} not found")
    for written, claim_written in reservation.static:
        volume = _stored(reservation.volumes, written, "failed to check binding")
        claim = _stored(reservation.claims, claim_written, "failed to check binding")
        if _is_older(volume, written):
            return _Awaited("PersistentVolume", volume.name)
        _check_node_affinity(handle, volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f"ClaimRef got reset for pv {quote(volume.name)}")
        if not is_fully_bound(claim):
            return _Awaited("PersistentVolumeClaim", claim.name, claim.metadata.namespace)
    for claim_written in reservation.dynamic:
        claim = _stored(reservation.claims, claim_written, "failed to check provisioning pvc")
        awaited = _check_provisioning(handle, reservation, claim, claim_written, node)
        if awaited is not None:
            return awaited
    return None


def _check_provisioning(
    handle: Handle,
    reservation: Reservation,
    claim: PersistentVolumeClaim,
    written: PersistentVolumeClaim,
    node: NodeColumns,
) -> _Awaited | None:
    this_claim = _Awaited("PersistentVolumeClaim", claim.name, claim.metadata.namespace)
    if _is_older(claim, written):
        return this_claim
    if claim.metadata.annotations is None:
        raise BindingFailed(f"selectedNode annotation reset for PVC {quote(claim.name)}")
    if claim.metadata.annotations.get(SELECTED_NODE, "") != reservation.node_name:
        # A provisioner that could not create the volume removes the annotation.
        raise BindingFailed(f"provisioning failed for PVC {quote(claim.name)}")
    if claim.spec.volume_name:
        volume = reservation.volumes.stored(claim.spec.volume_name)
        if volume is None:
            return _Awaited("PersistentVolume", claim.spec.volume_name)
        _check_node_affinity(handle, volume, node)
    return None if is_fully_bound(claim) else this_claim


def _stored(cache: AssumeCache[Any], one: Any, prefix: str) -> Any:
    """*one* as a watch last showed it."""
    found = cache.stored(one.metadata.name, one.metadata.namespace)
    if found is None:
        raise BindingFailed(f"{prefix}: {cache.not_found(one)}")
    return found


def _is_older(shown: PersistentVolume | PersistentVolumeClaim, written: Any) -> bool:
    return int(shown.metadata.resource_version or 0) < int(written.metadata.resource_version or 0)


def _check_node_affinity(handle: Handle, volume: PersistentVolume, node: NodeColumns) -> None:
    affinity = volume.required_affinity
    plugin = in_tree_plugin(volume.spec)
    name = node.name(0)
    if plugin is not None and plugin.migrated and is_migrated_on(plugin, handle.object("CSINode", name)):
        try:
            affinity = translated_affinity(volume, plugin)
        except TranslationError as error:
            raise BindingFailed(f"failed to translate pv to csi: could not translate pv: {error}") from error
    if not match_volume_affinity(affinity, node)[0]:
        raise BindingFailed(
            f"pv {quote(volume.name)} node affinity doesn't match node {quote(name)}: no matching NodeSelectorTerms"
        )
