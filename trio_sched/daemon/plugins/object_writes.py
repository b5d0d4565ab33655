"""Reads and writes objects through the API server, for plugins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
from attrs import frozen

from trio_sched.daemon.limits import MAX_NAME_LENGTH
from trio_sched.daemon.watching.watched_kinds import WATCHED_ANYWAY, kind_of
from trio_sched.go.text import shortened
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    KubeClientError,
    NotFound,
    ServerError,
    TooManyRequests,
    UndecodableObject,
    WriteNotPermitted,
)
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.pods import evict_pod
from trio_sched.kube_client.versions.api_versions import body_in_version
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomObject, CustomResource, Watched
from trio_sched.plugin_api.handle import ApiRequestFailed, NotLeading, ObjectGone, OutcomeUnknown, WriteConflict

_is_subresource = re.compile(r"[a-z]*").fullmatch


@frozen(eq=False)
class ObjectWrites:
    """What a handle does with objects at the API server; see `trio_sched.plugin_api.Handle`."""

    client: KubeClient
    served: ServedVersions

    async def read(self, kind: Watched, name: str, *, namespace: str = "") -> Any:
        """Get an object."""
        found = _place(kind, name, namespace)
        with errors_of_the_api():
            return await self.served.use(found, partial(verbs.get, self.client, name=name, namespace=namespace))

    async def create(self, kind: Watched, body: Any, *, namespace: str = "") -> Any:
        """Create an object."""
        whole = {**type_fields(kind), **plain_object(kind, body)}
        metadata = whole.get("metadata")
        if isinstance(namespace, str) and not namespace and isinstance(metadata, Mapping):
            namespace = metadata.get("namespace") or ""
        found = _place(kind, None, namespace)

        async def create(served: Kind[Any]) -> Any:
            body = _encode(kind, body_in_version(found, served, whole))
            return await verbs.create(self.client, served, body, namespace=namespace)

        with errors_of_the_api():
            return await self.served.use(found, create)

    async def patch(
        self, kind: Watched, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* into an object."""
        if not isinstance(subresource, str) or not _is_subresource(subresource):
            raise LookupError(f"{kind} has no subresource {subresource!r}: it is 'status', for instance, or ''")
        found, fields = _place(kind, name, namespace), plain_object(kind, patch)

        async def send(served: Kind[Any]) -> Any:
            body = _encode(kind, body_in_version(found, served, fields))
            return await verbs.patch(self.client, served, name, body, namespace=namespace, subresource=subresource)

        with errors_of_the_api():
            return await self.served.use(found, send)

    async def delete(self, kind: Watched, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object."""
        found = _place(kind, name, namespace)
        with errors_of_the_api():
            delete = partial(verbs.delete, self.client, name=name, namespace=namespace, uid=uid)
            await self.served.use(found, delete)

    async def evict(self, pod: Pod) -> None:
        """Delete a pod unless a disruption budget protects it."""
        if not isinstance(pod, Pod):
            raise TypeError(f"handle.evict takes a pod, not {type(pod).__name__}")
        with errors_of_the_api():
            try:
                await evict_pod(self.client, namespace=pod.namespace, name=pod.name, uid=pod.uid)
            except TooManyRequests as error:
                raise WriteConflict(str(error)) from error


def type_fields(kind: Watched) -> dict[str, str]:
    """``apiVersion`` and ``kind`` of objects of *kind*, as in manifests."""
    if isinstance(kind, CustomResource):
        return {"apiVersion": kind.api_version, "kind": kind.kind}
    named = {} if "." in kind else {"kind": kind}  # plural.version.group does not say what objects are called
    return {"apiVersion": kind_to_write(kind).api_version, **named}


def kind_to_write(kind: Watched) -> Kind[Any]:
    """How *kind* is written.

    Raises:
        LookupError: there is no such kind.
    """
    known = WATCHED_ANYWAY.get(kind) if isinstance(kind, str) else None
    if known is not None:
        return known
    found = kind_of(kind) if isinstance(kind, str | CustomResource) else None
    if found is None:
        raise LookupError(f"{kind!r} is no kind that plugins can read or write; others are declared by CustomResource")
    return found[1]


def plain_object(kind: Watched, body: Any) -> dict[str, Any]:
    """*body*, a dict as in JSON or an object of the type of a custom resource, as a dict.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(body, CustomObject):
        return dict(body.fields)
    if isinstance(kind, CustomResource) and isinstance(body, kind.type):
        plain: dict[str, Any] = msgspec.to_builtins(body)
        return plain
    if not isinstance(body, Mapping):
        raise TypeError(f"{kind} is written as a dict, as in JSON, not as {type(body).__name__}")
    return dict(body)


def _encode(kind: Watched, body: Any) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as problem:
        raise TypeError(f"{kind}: it cannot be encoded as JSON: {problem}") from None


def _place(kind: Watched, name: str | None, namespace: str) -> Kind[Any]:
    """How *kind* is written; checks that there can be such an object.

    Without a name, a request would be about all objects of the namespace.

    Raises:
        LookupError: there cannot.
    """
    found = kind_to_write(kind)
    if name is not None and (not _can_be_in_path(name) or name in ("", ".", "..")):
        raise LookupError(f"no {kind} can be called {shortened(repr(name))}: give the name of the object")
    if not _can_be_in_path(namespace):
        raise LookupError(f"no namespace can be called {shortened(repr(namespace))}")
    is_scope_known = isinstance(kind, CustomResource) or "." not in kind
    if is_scope_known and found.namespaced and not namespace:
        raise LookupError(f"{kind} is in namespaces: give namespace=… as well")
    return found


def _can_be_in_path(name: object) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and name.isprintable()


@contextmanager
def errors_of_the_api() -> Iterator[None]:
    """Turn errors that plugins act upon into those of the plugin API."""
    try:
        yield
    except WriteNotPermitted as error:
        raise NotLeading(str(error)) from error
    except (Conflict, AlreadyExists) as error:
        raise WriteConflict(str(error)) from error
    except NotFound as error:
        raise ObjectGone(str(error)) from error
    except ConnectionFailed as error:
        if error.may_have_reached_server:
            raise OutcomeUnknown(str(error)) from error
        raise ApiRequestFailed(str(error)) from error
    except (ServerError, UndecodableObject) as error:  # a proxy, or a server at its limits, may answer too early
        raise OutcomeUnknown(str(error)) from error
    except KubeClientError as error:
        raise ApiRequestFailed(str(error)) from error
