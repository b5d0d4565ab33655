"""From "these volumes" to "bound": what is assumed, what is written, and what is waited for.

Source: AssumePodVolumes and BindPodVolumes of kube-scheduler's volume binder, its texts included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from attrs import define, field

from plugins_builtin._assume_cache import AssumeCache
from plugins_builtin._csi_translation import TranslationError, in_tree_plugin, is_migrated_on, translated_affinity
from plugins_builtin._volume_search import PodVolumes
from plugins_builtin._volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, is_fully_bound, reachable_from, refers_to
from trio_sched.plugin_api import (
    ClaimReference,
    Handle,
    NodeColumns,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    replace_fields,
)

LOOK_AGAIN_SECONDS = 1.0
"""How long to wait for a change before looking all the same; the pod or the node may be gone."""


class BindingFailed(Exception):
    """The volumes will not be bound; the pod has to be scheduled anew."""


class _Awaited(NamedTuple):
    """The object whose next version may be the one that is waited for."""

    kind: str
    name: str
    namespace: str = ""


@define(eq=False)
class Reservation:
    """What was decided for the claims of one pod."""

    volumes: AssumeCache[PersistentVolume]
    claims: AssumeCache[PersistentVolumeClaim]
    node_name: str
    static: list[tuple[PersistentVolume, PersistentVolumeClaim]] = field(factory=list)
    """Volumes with the claims they are for."""
    dynamic: list[PersistentVolumeClaim] = field(factory=list)
    """Claims for which a volume is to be made."""
    patches: dict[tuple[str, str, str], dict[str, Any]] = field(factory=dict)
    """What the API server is to be told about which (kind, namespace, name)."""

    def assume(self, found: PodVolumes) -> None:
        """Decide that the pod gets *found*.

        Raises:
            OutOfSync: something has changed meanwhile; what was assumed already must be reverted.
        """
        for volume, claim in found.static:
            # What has only been assumed so far, for another pod with the same claim, is still to be written.
            assumed, patch = _bound_to(self.volumes.stored(volume.name) or volume, claim)
            if patch:
                self.volumes.assume(assumed)
                self.patches["PersistentVolume", "", volume.name] = patch
            self.static.append((assumed, claim))
        for provision in found.dynamic:
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
        """Nothing of it holds any more."""
        for volume, _claim in self.static:
            self.volumes.restore(volume)
        for claim in self.dynamic:
            self.claims.restore(claim)

    def tidy(self) -> None:
        """Forget what the API server has confirmed."""
        for volume, _claim in self.static:
            self.volumes.tidy(volume.name)
        for claim in self.dynamic:
            self.claims.tidy(claim.name, claim.metadata.namespace)


def _bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, dict[str, Any] | None]:
    """*volume* as it is when it is kept for *claim*, and the patch that makes it so; None if it is so already."""
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
    """Write down what was decided and wait until all of the pod's claims have their volumes.

    Raises:
        BindingFailed: they will not have them, or not in time, or the API server refused, in its words.
    """
    try:
        await _write(handle, reservation)
    except Exception as refused:  # the handle's errors have no common type
        raise BindingFailed(str(refused)) from refused
    deadline = handle.now() + timeout_seconds
    while True:
        try:
            awaited = _look(handle, pod, reservation)
        except BindingFailed as problem:
            raise BindingFailed(f"binding volumes: {problem}") from problem
        if awaited is None:
            reservation.tidy()
            return
        left = deadline - handle.now()
        if left <= 0:
            raise BindingFailed("binding volumes: context deadline exceeded")
        await handle.changed(
            awaited.kind,
            awaited.name,
            namespace=awaited.namespace,
            timeout_seconds=min(left, LOOK_AGAIN_SECONDS),
        )


async def _write(handle: Handle, reservation: Reservation) -> None:
    """Send the patches, each on the condition that the object is still what was decided on; volumes first."""
    for i, (volume, claim) in enumerate(reservation.static):
        patch = reservation.patches.pop(("PersistentVolume", "", volume.name), None)
        if patch is not None:
            written = await handle.patch("PersistentVolume", volume.name, _locked(patch, volume))
            reservation.static[i] = (written, claim)
    for i, claim in enumerate(reservation.dynamic):
        namespace = claim.metadata.namespace
        patch = reservation.patches.pop(("PersistentVolumeClaim", namespace, claim.name), None)
        if patch is not None:
            patch = _locked(patch, claim)
            written = await handle.patch("PersistentVolumeClaim", claim.name, patch, namespace=namespace)
            reservation.dynamic[i] = written


def _locked(patch: dict[str, Any], one: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    version = {"resourceVersion": one.metadata.resource_version}
    return {**patch, "metadata": {**patch.get("metadata", {}), **version}}


def _look(handle: Handle, pod: Pod, reservation: Reservation) -> _Awaited | None:
    """See how far the volume controller has come, by what the watches show.

    Returns:
        None when every claim has its volume, else what has to change for that.

    Raises:
        BindingFailed: it has given up, or there is nothing to wait for any more.
    """
    node_name = reservation.node_name
    nodes = handle.nodes
    position = nodes.position(node_name)
    if position is None:
        raise BindingFailed(f'failed to get node "{node_name}": node "{node_name}" not found')
    node = nodes.take(slice(position, position + 1))
    known = handle.pending_pod(pod.namespace, pod.name)
    if known is None or known.uid != pod.uid:
        raise BindingFailed(f'pod does not exist any more: pod "{pod.name}" not found')
    for written, claim_written in reservation.static:
        volume = _known(reservation.volumes, written, "failed to check binding")
        claim = _known(reservation.claims, claim_written, "failed to check binding")
        if _is_older(volume, written):
            return _Awaited("PersistentVolume", volume.name)
        _check_reach(handle, volume, node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        if not is_fully_bound(claim):
            return _Awaited("PersistentVolumeClaim", claim.name, claim.metadata.namespace)
    for claim_written in reservation.dynamic:
        claim = _known(reservation.claims, claim_written, "failed to check provisioning pvc")
        missing = _check_provisioning(handle, reservation, claim, claim_written, node)
        if missing is not None:
            return missing
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
        raise BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
    if claim.metadata.annotations.get(SELECTED_NODE, "") != reservation.node_name:
        # That is how a provisioner says that it could not make the volume.
        raise BindingFailed(f'provisioning failed for PVC "{claim.name}"')
    if claim.spec.volume_name:
        volume = reservation.volumes.stored(claim.spec.volume_name)
        if volume is None:
            return _Awaited("PersistentVolume", claim.spec.volume_name)
        _check_reach(handle, volume, node)
    return None if is_fully_bound(claim) else this_claim


def _known(cache: AssumeCache[Any], one: Any, prefix: str) -> Any:
    """What a watch shows of *one*."""
    found = cache.stored(one.metadata.name, one.metadata.namespace)
    if found is None:
        raise BindingFailed(f"{prefix}: {cache.missing(one)}")
    return found


def _is_older(shown: PersistentVolume | PersistentVolumeClaim, written: Any) -> bool:
    return int(shown.metadata.resource_version or 0) < int(written.metadata.resource_version or 0)


def _check_reach(handle: Handle, volume: PersistentVolume, node: NodeColumns) -> None:
    affinity = volume.required_affinity
    plugin = in_tree_plugin(volume.spec)
    name = node.name(0)
    if plugin is not None and plugin.migrated and is_migrated_on(plugin, handle.object("CSINode", name)):
        try:
            affinity = translated_affinity(volume, plugin)
        except TranslationError as error:
            raise BindingFailed(f"failed to translate pv to csi: could not translate pv: {error}") from error
    if not reachable_from(affinity, node)[0]:
        raise BindingFailed(
            f'pv "{volume.name}" node affinity doesn\'t match node "{name}": no matching NodeSelectorTerms'
        )
