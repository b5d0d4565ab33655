"""The volumes that a claim without one could have, and why it gets none of them."""

from __future__ import annotations

from typing import Final

from plugins_builtin.volumes.volumes import STORAGE, capacity_nano, requested_nano, volume_mode, whole_bytes
from trio_sched.plugin_api import (
    Handle,
    PersistentVolume,
    PersistentVolumeClaim,
    SelectorError,
    amount_text,
    compile_selector,
    some_names,
)

_CLAIM: Final = "PersistentVolumeClaim"


def why_none(handle: Handle, claim: PersistentVolumeClaim) -> str:
    """Why the free volumes of its class do not suit *claim*."""
    free = free_volumes(handle, claim)
    if not free:
        kept = [(one, one.spec.claim_ref) for one in kept_volumes(handle, claim)]
        if kept:
            of_here = f"{claim.metadata.namespace}/"
            keys = [(one, f"{of.namespace}/{of.name}") for one, of in kept if of is not None]
            texts = [f"{one.name} for {key.removeprefix(of_here)}" for one, key in keys]
            return f" (it keeps {some_names(texts)}, which {'is' if len(texts) == 1 else 'are'} gone)"
        others = [
            f"{one.name} has class {one.storage_class or 'none'}"
            for one in handle.objects("PersistentVolume")
            if one.spec.claim_ref is None and one.storage_class != claim.storage_class
        ]
        return " (there is none of this class" + (f"; {some_names(others)})" if others else ")")
    if capacity_nano(free[0]) < requested_nano(claim):
        return f" (the largest is {free[0].name} with {amount_text(STORAGE, whole_bytes(capacity_nano(free[0])))})"
    modes, names = set(claim.spec.access_modes or ()), f"{some_names([one.name for one in free])} of this class"
    has = "has" if len(free) == 1 else "have"
    if not any(modes <= set(one.spec.access_modes or ()) for one in free):
        return f" ({names} cannot be used as {', '.join(sorted(modes))})"
    if not any(volume_mode(one) == volume_mode(claim) for one in free):
        return f" ({names} {has} another volumeMode than {volume_mode(claim)})"
    if not any(is_selected(claim, one) for one in free):
        return f" ({names} {has} other labels than its selector asks for)"
    return f" ({names} {'does' if len(free) == 1 else 'do'} not fit its selector, modes and size at once)"


def is_selected(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the selector of *claim*, if it has one, selects *volume*."""
    try:
        return claim.spec.selector is None or compile_selector(claim.spec.selector).matches(
            volume.metadata.labels or {}
        )
    except SelectorError:
        return False


def free_volumes(handle: Handle, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    """The volumes of the class of *claim* that no claim has, the largest first."""
    free = [
        one
        for one in handle.objects("PersistentVolume")
        if one.storage_class == claim.storage_class and one.spec.claim_ref is None
    ]
    return sorted(free, key=lambda one: (-capacity_nano(one), one.name))


def kept_volumes(handle: Handle, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
    """The volumes of the class of *claim* that are kept for a claim that is gone, or that was never there."""

    def is_kept(one: PersistentVolume) -> bool:
        of = one.spec.claim_ref
        if one.status.phase == "Released" or of is None:
            return of is not None
        return one.status.phase != "Bound" and handle.object(_CLAIM, of.name, of.namespace) is None

    return [
        one for one in handle.objects("PersistentVolume") if one.storage_class == claim.storage_class and is_kept(one)
    ]
