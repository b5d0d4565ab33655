"""Leases, read and written whole: fields that the classes here do not have survive an update."""

from collections.abc import Mapping
from typing import Any

import msgspec
from attrs import evolve, field, frozen

from trio_sched.documents.deep_json import decode_deep, with_deep_recursion
from trio_sched.documents.json_values import encode
from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.decoding.decoding import UNDECODABLE, describe_undecodable
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.kinds import LEASE_KIND
from trio_sched.objects.lease import Lease, LeaseSpec

_raw_decoder = msgspec.json.Decoder(dict[str, Any])


@frozen(kw_only=True)
class StoredLease:
    """A lease as the server has it.

    Attributes:
        lease: what an elector reads.
        raw: the whole object, also the fields that the classes here do not have.
        record: the spec as text; it changes with every renewal.
    """

    lease: Lease
    raw: dict[str, Any] = field(repr=False)
    record: bytes

    @classmethod
    def decode(cls, body: bytes) -> "StoredLease":
        """The lease in *body*.

        Raises:
            UndecodableObject: it is not one.
        """
        try:
            raw = decode_deep(_raw_decoder.decode, body)
            lease = msgspec.convert(raw, Lease)
        except UNDECODABLE as problem:
            raise UndecodableObject("leases", "", "", describe_undecodable(problem)) from problem
        return cls(lease=lease, raw=raw, record=record_of(lease.spec))

    def with_annotations(self, annotations: Mapping[str, str]) -> "StoredLease":
        """The same lease, to be written with *annotations* besides those that it has."""
        metadata = self.raw.get("metadata") or {}
        merged = {**(metadata.get("annotations") or {}), **annotations}
        return evolve(self, raw={**self.raw, "metadata": {**metadata, "annotations": merged}})


def record_of(spec: LeaseSpec) -> bytes:
    """*spec* as text; it changes with every renewal."""
    return encode(spec)


async def get_lease(
    client: KubeClient, *, namespace: str, name: str, timeout_seconds: float | None = None
) -> StoredLease:
    """The lease called *name*.

    Args:
        client: one with a rate limit of its own: waiting behind binds for a token could delay a renewal too long.
        namespace: of the lease.
        name: of the lease.
        timeout_seconds: how long the server may take; None leaves that to the server.

    Raises:
        NotFound: it does not exist yet.
    """
    target = LEASE_KIND.path(name, namespace=namespace) + _timeout(timeout_seconds)
    return StoredLease.decode(await client.call(b"GET", target.encode()))


async def list_leases(
    client: KubeClient, *, namespace: str, timeout_seconds: float | None = None
) -> dict[str, StoredLease]:
    """All leases of a namespace by name, as they are now; one that cannot be read is left out.

    Arguments as for :func:`get_lease`.
    """
    target = LEASE_KIND.collection(namespace) + _timeout(timeout_seconds)
    body = await client.call(b"GET", target.encode())
    try:
        items = decode_deep(_raw_decoder.decode, body).get("items") or ()
    except UNDECODABLE as problem:
        raise UndecodableObject("leases", "", "", describe_undecodable(problem)) from problem
    found: dict[str, StoredLease] = {}
    for raw in items if isinstance(items, list) else ():
        try:
            lease = msgspec.convert(raw, Lease)
        except UNDECODABLE:
            continue
        found[lease.metadata.name] = StoredLease(lease=lease, raw=raw, record=record_of(lease.spec))
    return found


async def create_lease(
    client: KubeClient,
    *,
    namespace: str,
    name: str,
    spec: LeaseSpec,
    annotations: Mapping[str, str] | None = None,
    timeout_seconds: float | None = None,
) -> StoredLease:
    """Create the lease called *name*; arguments as for :func:`get_lease`.

    Raises:
        AlreadyExists: another candidate created it first.
    """
    lease = {
        "kind": "Lease",
        "apiVersion": LEASE_KIND.api_version,
        "metadata": {"name": name, "namespace": namespace, **({"annotations": annotations} if annotations else {})},
        "spec": spec,
    }
    target = LEASE_KIND.collection(namespace) + _timeout(timeout_seconds)
    return StoredLease.decode(await client.call(b"POST", target.encode(), headers=JSON, body=encode(lease)))


async def update_lease(
    client: KubeClient, stored: StoredLease, spec: LeaseSpec, *, timeout_seconds: float | None = None
) -> StoredLease:
    """Write *spec* into *stored*, whose resource version must still be the current one.

    Metadata, and fields that `LeaseSpec` does not have, stay as they are; fields that *spec* leaves unset are removed.

    Raises:
        Conflict: it was changed since.
        NotFound: it was deleted.
    """
    known = {encoded for encoded in LeaseSpec.__struct_encode_fields__}
    kept = {key: value for key, value in (stored.raw.get("spec") or {}).items() if key not in known}
    body = {**stored.raw, "spec": {**kept, **msgspec.to_builtins(spec)}}
    metadata = stored.lease.metadata
    target = LEASE_KIND.path(metadata.name, namespace=metadata.namespace) + _timeout(timeout_seconds)
    encoded = with_deep_recursion(encode, body)
    return StoredLease.decode(await client.call(b"PUT", target.encode(), headers=JSON, body=encoded))


def _timeout(seconds: float | None) -> str:
    return "" if seconds is None else f"?timeout={seconds:g}s"
