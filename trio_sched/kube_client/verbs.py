"""Get, list, create, update, patch, delete: for any kind, typed."""

from collections.abc import Callable
from urllib.parse import urlencode

import msgspec
import trio

from trio_sched.kube_client.connection import JSON, MERGE_PATCH, METADATA_ONLY, KubeClient
from trio_sched.kube_client.decoding.decoding import Codec, Page
from trio_sched.kube_client.decoding.streamed_list import StreamedList
from trio_sched.kube_client.errors import ConnectionFailed, Expired, UndecodableObject
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.kube_client.kinds import Kind, T
from trio_sched.objects.metadata import ListMeta

PAGE_LIMIT = 500
_DELETE_OPTIONS = b'{"kind":"DeleteOptions","apiVersion":"v1"}'


async def get(client: KubeClient, kind: Kind[T], name: str, *, namespace: str = "") -> T:
    """The object called *name*.

    Raises:
        NotFound: there is none.
    """
    return Codec(kind).object(await client.call(b"GET", kind.path(name, namespace=namespace).encode()))


async def list_pages(
    client: KubeClient,
    kind: Kind[T],
    take: Callable[[Page[T]], None],
    *,
    namespace: str = "",
    codec: Codec[T] | None = None,
    metadata_only: bool = False,
) -> None:
    """List all objects as they are now and pass them to *take* in pages of :data:`PAGE_LIMIT`, compressed in transit.

    If the continue token expires before the last page, one page with all objects follows, marked ``starts_over``.

    Args:
        client: of the API server.
        kind: what to list.
        take: called with every page.
        namespace: of the objects; empty: all namespaces.
        codec: of the kind.
        metadata_only: ask for nothing but the metadata; *kind* has a type that needs no more.

    Raises:
        ApiError: the server refused.
        ConnectionFailed: there is no complete response.
    """
    headers = client.list_headers + (METADATA_ONLY if metadata_only else b"")
    await _list_rest(client, codec or Codec(kind), take, namespace, None, headers)


async def list_from_cache(
    client: KubeClient,
    kind: Kind[T],
    take: Callable[[Page[T]], None],
    *,
    namespace: str = "",
    codec: Codec[T] | None = None,
) -> None:
    """List all objects from the server's watch cache and pass them to *take*: a third of the cost of a consistent read.

    They may be a little older than what was read before: for a first list, which a watch follows. The cache answers in
    one piece, so the objects are decoded while it arrives; the metadata comes with the last page.

    Raises:
        ApiError: the server refused.
        ConnectionFailed: there is no complete response.
        UndecodableObject: the response is not a list.
    """
    codec = codec or Codec(kind)
    metadata = ListMeta()

    def take_piece(page: Page[T]) -> None:
        nonlocal metadata
        metadata = page.metadata
        take(page)

    target = _list_target(kind, namespace, resourceVersion="0", limit=PAGE_LIMIT)
    try:
        with trio.fail_after(client.request_seconds):
            async with client.stream(target, headers=client.list_headers) as stream:
                body = StreamedList(codec, take_piece, stream.headers)
                while received := await stream.receive():
                    body.feed(received)
    except trio.TooSlowError as problem:
        text = f"context deadline exceeded: no complete response within {client.request_seconds:g} s"
        raise ConnectionFailed(client.settings.server, text, may_have_reached_server=True, timed_out=True) from problem
    try:
        body.end()
    except UndecodableObject:
        client.check(b"GET", target, Reply(stream.status, stream.headers, body.rest))  # a page of a web server?
        raise
    if metadata.continue_:
        await _list_rest(client, codec, take, namespace, metadata.continue_, client.list_headers)


async def _list_rest(
    client: KubeClient,
    codec: Codec[T],
    take: Callable[[Page[T]], None],
    namespace: str,
    token: str | None,
    headers: bytes,
) -> None:
    """Read the pages from *token* on; all of them if it is None."""

    async def read(**query: str | int) -> Page[T]:
        target = _list_target(codec.kind, namespace, **query)
        return codec.page(await client.call(b"GET", target, headers=headers))

    while token is None or token:
        try:
            page = await read(limit=PAGE_LIMIT, **({"continue": token} if token else {}))
        except Expired:
            if token is None:
                raise
            page = (await read())._replace(starts_over=True)
        take(page)
        token = page.metadata.continue_


def _list_target(kind: Kind[T], namespace: str, **query: str | int) -> bytes:
    selector = {"fieldSelector": kind.field_selector} if kind.field_selector else {}
    return f"{kind.collection(namespace)}?{urlencode({**selector, **query})}".rstrip("?").encode()


async def create(client: KubeClient, kind: Kind[T], body: bytes, *, namespace: str = "") -> T:
    """Create the object in *body* (JSON with ``apiVersion`` and ``kind``).

    Raises:
        AlreadyExists: the name is taken.
    """
    target = kind.collection(namespace).encode()
    return Codec(kind).object(await client.call(b"POST", target, headers=JSON, body=body))


async def update(
    client: KubeClient, kind: Kind[T], name: str, body: bytes, *, namespace: str = "", subresource: str = ""
) -> T:
    """Replace the object called *name* by the one in *body*, which must be whole: fields it lacks are removed.

    Raises:
        Conflict: *body* has another resource version than the stored object.
    """
    target = kind.path(name, namespace=namespace, subresource=subresource).encode()
    return Codec(kind).object(await client.call(b"PUT", target, headers=JSON, body=body))


async def patch(
    client: KubeClient,
    kind: Kind[T],
    name: str,
    body: bytes,
    *,
    namespace: str = "",
    subresource: str = "",
    patch_type: bytes = MERGE_PATCH,
) -> T:
    """Patch the object called *name* with *body*.

    Args:
        client: sends the request.
        kind: of the object.
        name: of the object.
        body: the patch.
        namespace: of the object.
        subresource: ``status``, for instance.
        patch_type: the header line with the type of the patch.
    """
    target = kind.path(name, namespace=namespace, subresource=subresource).encode()
    return Codec(kind).object(await client.call(b"PATCH", target, headers=patch_type, body=body))


async def delete(
    client: KubeClient, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "", resource_version: str = ""
) -> None:
    """Delete the object called *name*, with its own grace period.

    Args:
        client: sends the request.
        kind: of the object.
        name: of the object.
        namespace: of the object.
        uid: delete it only if it has this UID; empty: any.
        resource_version: delete it only if it has this version; empty: any.

    Raises:
        NotFound: it does not exist.
        Conflict: the object of that name has another UID, or version.
    """
    body = _DELETE_OPTIONS
    wanted = {"uid": uid, "resourceVersion": resource_version}
    if preconditions := {field: value for field, value in wanted.items() if value}:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        body = msgspec.json.encode(options)
    await client.call(b"DELETE", kind.path(name, namespace=namespace).encode(), headers=JSON, body=body)
