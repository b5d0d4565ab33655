"""Objects as a watch shows them, overlaid with the versions that this scheduler has assumed and not yet written."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import define, field

from trio_sched.plugin_api import Handle, PersistentVolume, PersistentVolumeClaim, quote

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class OutOfSync(Exception):
    """The object has changed since the version that was to be assumed."""


@define(eq=False)
class AssumeCache(Generic[T]):
    """The objects of one kind; an assumed version is used until a watch shows another resourceVersion.

    Source: the assume cache of kube-scheduler's volume binder.
    """

    kind: str
    _handle: Handle
    _assumed: dict[tuple[str, str], T] = field(factory=dict)

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object as assumed, else as a watch last showed it."""
        stored = self.stored(name, namespace)
        return self.latest(stored) if stored is not None else None

    def stored(self, name: str, namespace: str = "") -> T | None:
        """The object as a watch last showed it."""
        stored: T | None = self._handle.object(self.kind, name, namespace)
        return stored

    def latest(self, stored: T) -> T:
        """The assumed version of *stored*, else *stored* itself."""
        if not self._assumed:
            return stored
        key = _key(stored)
        assumed = self._assumed.get(key)
        if assumed is None:
            return stored
        if assumed.metadata.resource_version == stored.metadata.resource_version:
            return assumed
        del self._assumed[key]
        return stored

    def assume(self, one: T) -> None:
        """Use *one* as the version of its object.

        Raises:
            OutOfSync: the object is at another resourceVersion, or gone.
        """
        key = _key(one)
        stored = self.stored(one.metadata.name, one.metadata.namespace)
        if stored is None:
            raise OutOfSync(self.not_found(one))
        found, expected = stored.metadata.resource_version, one.metadata.resource_version
        if found != expected:
            raise OutOfSync(f"{quote(_path(one))} is out of sync (stored: {found}, assume: {expected})")
        self._assumed[key] = one

    def not_found(self, one: T) -> str:
        """The error text when *one* is gone."""
        return f"could not find v1.{self.kind} {quote(_path(one))}"

    def restore(self, one: T) -> None:
        """Forget the assumed version, unless it is based on another resourceVersion than *one*."""
        key = _key(one)
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.metadata.resource_version == one.metadata.resource_version:
            del self._assumed[key]
        else:
            self.drop_confirmed(one.metadata.name, one.metadata.namespace)

    def drop_confirmed(self, name: str, namespace: str = "") -> None:
        """Forget the assumed version of an object if a watch has shown another resourceVersion since."""
        stored = self.stored(name, namespace)
        if stored is None:
            self._assumed.pop((namespace, name), None)
        else:
            self.latest(stored)


def _key(one: PersistentVolume | PersistentVolumeClaim) -> tuple[str, str]:
    return one.metadata.namespace, one.metadata.name


def _path(one: PersistentVolume | PersistentVolumeClaim) -> str:
    return "/".join(part for part in _key(one) if part)
