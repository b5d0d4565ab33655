"""Leases, read and written whole: what others put into one survives our updates."""

from typing import Any

import msgspec
from attrs import field, frozen

from trio_sched.kube_client.connection import JSON, KubeClient
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.kinds import LEASE_KIND
from trio_sched.objects.lease import Lease, LeaseSpec

_encode = msgspec.json.Encoder().encode
_raw_decoder = msgspec.json.Decoder(dict[str, Any])


@frozen(kw_only=True)
class StoredLease:
    """A lease as the server has it.

    Attributes:
        lease: what an elector reads.
        raw: everything, also what our classes don't know.
        record: the spec as text; differs whenever the holder has renewed.
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
            raw = _raw_decoder.decode(body)
            lease = msgspec.convert(raw, Lease)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise UndecodableObject("leases", "", "", str(problem)) from problem
        return cls(lease=lease, raw=raw, record=record_of(lease.spec))


def record_of(spec: LeaseSpec) -> bytes:
    """*spec* as text; differs whenever the holder has renewed."""
    return _encode(spec)


async def get_lease(
    client: KubeClient, *, namespace: str, name: str, timeout_seconds: float | None = None
) -> StoredLease:
    """The lease called *name*.

    Args:
        client: one of its own: waiting behind binds for a token could cost us the lead.
        namespace: where it lives.
        name: which.
        timeout_seconds: how long the server may take, None: as long as it likes.

    Raises:
        NotFound: nobody has created it yet.
    """
    target = LEASE_KIND.path(name, namespace=namespace) + _timeout(timeout_seconds)
    return StoredLease.decode(await client.call(b"GET", target.encode()))


async def create_lease(
    client: KubeClient, *, namespace: str, name: str, spec: LeaseSpec, timeout_seconds: float | None = None
) -> StoredLease:
    """Create the lease called *name*; arguments as for :func:`get_lease`.

    Raises:
        AlreadyExists: somebody was faster.
    """
    lease = {
        "kind": "Lease",
        "apiVersion": LEASE_KIND.api_version,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    target = LEASE_KIND.collection(namespace) + _timeout(timeout_seconds)
    return StoredLease.decode(await client.call(b"POST", target.encode(), headers=JSON, body=_encode(lease)))


async def update_lease(
    client: KubeClient, stored: StoredLease, spec: LeaseSpec, *, timeout_seconds: float | None = None
) -> StoredLease:
    """Write *spec* into *stored*, whose resource version must still be the current one.

    Metadata and fields of the spec that our classes don't know stay as they are; fields that *spec* leaves unset go.

    Raises:
        Conflict: somebody else has written since.
        NotFound: it was deleted.
    """
    known = {encoded for encoded in LeaseSpec.__struct_encode_fields__}
    kept = {key: value for key, value in (stored.raw.get("spec") or {}).items() if key not in known}
    body = {**stored.raw, "spec": {**kept, **msgspec.to_builtins(spec)}}
    metadata = stored.lease.metadata
    target = LEASE_KIND.path(metadata.name, namespace=metadata.namespace) + _timeout(timeout_seconds)
    return StoredLease.decode(await client.call(b"PUT", target.encode(), headers=JSON, body=_encode(body)))


def _timeout(seconds: float | None) -> str:
    return "" if seconds is None else f"?timeout={seconds:g}s"
