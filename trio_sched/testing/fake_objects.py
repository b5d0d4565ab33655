"""The objects of a `FakeHandle`: what plugins read, and what becomes of what they write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from itertools import count
from typing import Any

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.plugins.kind_mistakes import write_key
from trio_sched.daemon.plugins.object_writes import kind_to_write, plain_object, type_fields
from trio_sched.daemon.watching.watched_kinds import check_kind
from trio_sched.plugin_api.custom_resources import CustomResource, Watched, as_json
from trio_sched.plugin_api.handle import ObjectGone, WriteConflict


@define(eq=False, kw_only=True)
class FakeObjects:
    """Objects by kind, and a record of writes."""

    known_objects: MutableMapping[Any, list[Any]] = field(factory=dict)
    """What `objects` returns, by kind: ``"Namespace"``, or a `CustomResource`.

    Pods and nodes are those of *nodes* and *pending*, unless they are given here.
    """
    watched: frozenset[Watched] | None = None
    """The kinds, and resources of events, that the plugins under test watch; None if that is not known.

    `make_profile`, and all that makes plugins, adds to it.
    """
    clock: float = 0.0
    """What `now` returns."""
    patched: list[tuple[Watched, str, Mapping[str, Any]]] = field(factory=list)
    """(kind, namespace/name, patch) for every call of `patch`."""
    deleted: list[tuple[Watched, str]] = field(factory=list)
    """(kind, namespace/name) for every call of `delete`."""
    refusal: Exception | None = None
    """What `create`, `patch`, `delete` and `evict` raise, unless it is None."""
    while_waiting: Callable[[], None] = lambda: None
    """Called whenever a plugin waits in `changed`."""
    _written: list[tuple[str, str]] = field(factory=list, init=False)
    """What plugins have written, as in ``writes``, and the verb: for the conformance checks."""
    _versions: dict[Watched, tuple[int, tuple[Any, ...]]] = field(factory=dict, init=False)
    """By kind: its version, and the objects that it stands for."""
    _resource_versions: count[int] = field(factory=lambda: count(1000), init=False)

    def pods_or_nodes(self, kind: str) -> Iterable[Any]:
        """What `objects` returns for ``Pod`` or ``Node`` if *known_objects* has none."""
        return ()

    def pod_created(self, pod: Any) -> None:
        """A plugin has created a pod while *known_objects* has none."""

    def objects(self, kind: Any) -> Iterable[Any]:
        """The objects of *kind* in *known_objects*.

        Raises:
            KindNotWatched: neither are there any, nor do the plugins under test watch it.
        """
        known = self.known_objects.get(kind)
        if known is None and kind in ("Pod", "Node"):
            return self.pods_or_nodes(kind)
        if known is None and self.watched is not None:
            check_kind(self.watched, kind)
        return known or ()

    def object(self, kind: Any, name: str, namespace: str = "") -> Any | None:
        """The object in *known_objects* with this name, or None.

        Raises:
            KindNotWatched: as by `objects`.
        """
        for known in self.objects(kind):
            if (known.metadata.namespace, known.metadata.name) == (namespace, name):
                return known
        return None

    def version(self, kind: Any) -> int:
        """A number that grows whenever *known_objects* has other objects of *kind* than at the last call.

        Raises:
            KindNotWatched: as by `objects`.
        """
        objects = tuple(self.objects(kind))
        number, seen = self._versions.get(kind, (0, ()))
        if len(objects) != len(seen) or any(now is not then for now, then in zip(objects, seen, strict=True)):
            number += 1
            self._versions[kind] = number, objects
        return number

    async def read(self, kind: Any, name: str, *, namespace: str = "") -> Any:
        """The object in *known_objects*.

        Raises:
            ObjectGone: there is none.
        """
        return self._stored(kind, name, namespace)

    async def create(self, kind: Any, body: Any, *, namespace: str = "") -> Any:
        """Put the object into *known_objects*, or raise *refusal*; ``generateName`` gets a number."""
        self._written.append((write_key(kind), "create"))
        if self.refusal is not None:
            raise self.refusal
        number = next(self._resource_versions)
        whole = {**type_fields(kind), **plain_object(kind, body)}
        metadata = dict(whole["metadata"])
        metadata["name"] = metadata.get("name") or f"{metadata.get('generateName', '')}{number}"
        namespace = namespace or metadata.get("namespace", "")
        metadata |= {"namespace": namespace, "uid": f"created-{number}", "resourceVersion": str(number)}
        new = decoded(kind, {**whole, "metadata": metadata})
        if kind in ("Pod", "Node") and kind not in self.known_objects:
            self.pod_created(new)
        else:
            self.known_objects[kind] = [*self.known_objects.get(kind, ()), new]
        return new

    async def patch(
        self, kind: Any, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Record the patch in *patched* and merge it into the object in *known_objects*, or raise *refusal*.

        Raises:
            ObjectGone: there is no such object.
            WriteConflict: it has another version than *patch*.
        """
        self._written.append((write_key(kind, subresource), "patch"))
        if self.refusal is not None:
            raise self.refusal
        self.patched.append((kind, f"{namespace}/{name}".lstrip("/"), patch))
        is_real = kind not in ("Pod", "Node") or kind in self.known_objects
        old = self._stored(kind, name, namespace) if is_real else self.object(kind, name, namespace)
        if old is None:
            return None
        version = patch.get("metadata", {}).get("resourceVersion")
        if version is not None and version != old.metadata.resource_version:
            raise WriteConflict(f"the object {name} is at version {old.metadata.resource_version}, not {version}")
        merged = _merged(msgspec.json.decode(as_json(old)), patch)
        merged["metadata"]["resourceVersion"] = str(next(self._resource_versions))
        new = decoded(kind, merged)
        if is_real:
            self.known_objects[kind] = [new if one is old else one for one in self.known_objects[kind]]
        return new

    async def delete(self, kind: Any, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Record the deletion in *deleted* and take the object out of *known_objects*, or raise *refusal*.

        Raises:
            ObjectGone: there is no such object.
        """
        self._written.append((write_key(kind), "delete"))
        if self.refusal is not None:
            raise self.refusal
        old = self._stored(kind, name, namespace)
        self.deleted.append((kind, f"{namespace}/{name}".lstrip("/")))
        if kind in self.known_objects:
            self.known_objects[kind] = [one for one in self.known_objects[kind] if one is not old]

    def _stored(self, kind: Any, name: str, namespace: str) -> Any:
        old = self.object(kind, name, namespace)
        if old is None:
            raise ObjectGone(f"no {kind} is called {name}")
        return old

    async def changed(self, kind: Any, name: str = "", *, timeout_seconds: float, namespace: str = "") -> bool:
        """Advance *clock* by *timeout_seconds* and call *while_waiting*.

        Raises:
            KindNotWatched: as by `objects`.
        """
        self.objects(kind)
        await trio.lowlevel.checkpoint()  # a test may cancel a task that waits again and again
        self.clock += timeout_seconds
        self.while_waiting()
        return True


def decoded(kind: Watched, whole: Mapping[str, Any]) -> Any:
    """An object as in JSON, as plugins read it."""
    if isinstance(kind, CustomResource):
        return kind.decode(msgspec.json.encode(whole))
    return msgspec.convert(whole, kind_to_write(kind).type)


def _merged(target: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            merged[name] = _merged(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged
