"""Get, list, create, update, patch, delete: for any kind, typed."""

from collections.abc import Callable
from urllib.parse import urlencode

import msgspec

from trio_sched.kube_client.connection import JSON, MERGE_PATCH, KubeClient
from trio_sched.kube_client.decoding import Codec, Page
from trio_sched.kube_client.errors import Expired
from trio_sched.kube_client.kinds import Kind, T

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
) -> None:
    """List all objects and pass them to *take* in pages of :data:`PAGE_LIMIT`, compressed in transit.

    Every list is a consistent read in pages, also the first. Kubernetes' own clients ask for resource version 0 first
    and for the last seen one later; both are answered from the watch cache in one piece, which for 150,000 pods is a
    body of most of a gigabyte, and may be older than what was read before. Servers of 1.31 and later answer consistent
    reads from that cache as well.

    If the continue token expires before the last page, one page with all objects follows, marked ``starts_over``.

    Raises:
        ApiError: the server refused.
        ConnectionFailed: there is no complete response.
    """
    codec = codec or Codec(kind)
    selector = {"fieldSelector": kind.field_selector} if kind.field_selector else {}
    path = kind.collection(namespace)

    async def read(**query: str | int) -> Page[T]:
        target = f"{path}?{urlencode({**selector, **query})}".rstrip("?")
        return codec.page(await client.call(b"GET", target.encode(), headers=client.list_headers))

    page = await read(limit=PAGE_LIMIT)
    take(page)
    while page.metadata.continue_:
        try:
            page = await read(limit=PAGE_LIMIT, **{"continue": page.metadata.continue_})
        except Expired:
            page = (await read())._replace(starts_over=True)
        take(page)


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


async def delete(client: KubeClient, kind: Kind[T], name: str, *, namespace: str = "", uid: str = "") -> None:
    """Delete the object called *name*, with its own grace period.

    Args:
        client: sends the request.
        kind: of the object.
        name: of the object.
        namespace: of the object.
        uid: delete it only if it has this UID; empty: any.

    Raises:
        NotFound: it does not exist.
        Conflict: the object of that name has another UID.
    """
    body = _DELETE_OPTIONS
    if uid:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        body = msgspec.json.encode(options)
    await client.call(b"DELETE", kind.path(name, namespace=namespace).encode(), headers=JSON, body=body)
