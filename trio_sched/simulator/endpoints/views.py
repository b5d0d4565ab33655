"""The forms an object can be shown in: itself, a row of a table, or its metadata alone."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from trio_sched.documents.json_values import Json, encode
from trio_sched.simulator.conversion.other_versions import from_stored, shape_of
from trio_sched.simulator.printers.tables import table_columns, table_row
from trio_sched.simulator.storage.object_store import Change, ChangeType, StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType


class View(Protocol):
    """A form objects are shown in; everything it returns is JSON."""

    def one(self, stored: StoredObject) -> bytes:
        """A single object."""

    def many(self, items: Sequence[StoredObject], metadata: Json) -> bytes:
        """A list with its *metadata*."""

    def event(self, kind: ChangeType, change: Change) -> bytes:
        """A line of a watch."""


class PlainView:
    """Objects as they are, in the version of *resource*."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self._prefix = resource.prefix

    def one(self, stored: StoredObject) -> bytes:
        """A single object."""
        return self._prefix + stored.tail

    def many(self, items: Sequence[StoredObject], metadata: Json) -> bytes:
        """A list with its *metadata*; items of typed lists do not repeat kind and version."""
        opening = b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[' % (
            self._resource.kind.encode(),
            self._resource.api_version.encode(),
            encode(metadata),
        )
        if self._resource.custom:  # lists of custom resources are the exception: their items do
            return opening + b",".join([self._prefix + stored.tail for stored in items]) + b"]}"
        return opening + b",".join([b"{" + stored.tail for stored in items]) + b"]}"

    def event(self, kind: ChangeType, change: Change) -> bytes:
        """A line of a watch, made once for all watchers."""
        return change.line(kind, self._prefix)


class ReshapedView(ABC):
    """Objects in a form that is made for each of them: a base for the others."""

    list_kind = ""
    list_api_version = ""

    @abstractmethod
    def shape(self, stored: StoredObject) -> Json:
        """The form of one object."""

    def one(self, stored: StoredObject) -> bytes:
        """A single object."""
        return encode(self.shape(stored))

    def many(self, items: Sequence[StoredObject], metadata: Json) -> bytes:
        """A list with its *metadata*."""
        shapes = [self.shape(stored) for stored in items]
        head = {"kind": self.list_kind, "apiVersion": self.list_api_version, "metadata": metadata}
        return encode({**head, "items": shapes})

    def event(self, kind: ChangeType, change: Change) -> bytes:
        """A line of a watch."""
        stored = change.deselected if kind == "DELETED" else change.current
        return encode({"type": kind, "object": self.shape(stored)}) + b"\n"


class OtherVersionView(ReshapedView):
    """Objects as *resource*, a version with another shape than the stored one, shows them."""

    def __init__(self, resource: ResourceType) -> None:
        self._resource = resource
        self.list_kind, self.list_api_version = f"{resource.kind}List", resource.api_version

    def one(self, stored: StoredObject) -> bytes:
        """A single object."""
        return self._resource.prefix + encode(from_stored(self._resource, stored.fields))[1:]

    def shape(self, stored: StoredObject) -> Json:
        """The form of one object."""
        shown = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        return {**shown, **from_stored(self._resource, stored.fields)}


class MetadataView(ReshapedView):
    """Only kind, version and metadata."""

    list_kind = "PartialObjectMetadataList"
    list_api_version = "meta.k8s.io/v1"

    def shape(self, stored: StoredObject) -> Json:
        """The metadata of one object."""
        return partial_metadata(stored)


def partial_metadata(stored: StoredObject) -> Json:
    """The metadata of one object, as an object of its own."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.fields["metadata"],
    }


class TableView:
    """Rows of a table, as kubectl prints them.

    Args:
        resource: what the rows are about.
        include: how much of each object a row carries: ``None``, ``Metadata`` or ``Object``.
        now: what ages are counted to.
    """

    def __init__(self, resource: ResourceType, include: str, now: datetime) -> None:
        self._resource, self._include, self._now = resource, include, now
        self._objects = OtherVersionView(resource) if shape_of(resource) is not None else PlainView(resource)
        self._columns = table_columns(resource)

    def one(self, stored: StoredObject) -> bytes:
        """A table of one row."""
        return encode(self._table([stored], {"resourceVersion": str(stored.version)}))

    def many(self, items: Sequence[StoredObject], metadata: Json) -> bytes:
        """A table with a row per object."""
        return encode(self._table(items, metadata))

    def event(self, kind: ChangeType, change: Change) -> bytes:
        """A line of a watch: a table of one row."""
        stored = change.deselected if kind == "DELETED" else change.current
        table = self._table([stored], {"resourceVersion": str(stored.version)})
        return encode({"type": kind, "object": table}) + b"\n"

    def _table(self, items: Sequence[StoredObject], metadata: Json) -> Json:
        rows = []
        for stored in items:
            row: Json = {"cells": table_row(self._resource, stored.fields, self._now)}
            if self._include == "Object":
                row["object"] = msgspec.Raw(self._objects.one(stored))
            elif self._include != "None":
                row["object"] = partial_metadata(stored)
            rows.append(row)
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self._columns,
            "rows": rows,
        }


def as_yaml(body: bytes) -> bytes:
    """A JSON *body* written as YAML."""
    import yaml  # few clients ask for it

    return yaml.dump(msgspec.json.decode(body), Dumper=yaml.CSafeDumper, sort_keys=True).encode()
