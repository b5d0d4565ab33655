"""Nodes and pods with a count: so many copies, with all that belongs to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.go.text import shortened
from trio_sched.simulator.manifests.dependents import HOST_NAME, NodeDependents, NodeParts, Owners
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError, ManifestProblem

COUNT: Final = "trio-sched.dev/count"
"""Annotation of a node or pod: how many of it there are."""
MOST_COPIES: Final = 100_000
"""The most copies of one template; of all together five times as many."""
_LONGEST_NAME: Final = 253
_OF_ONE_OBJECT: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_OF_ONE_NODE: Final = ("providerID", "podCIDR", "podCIDRs", "externalID")
_STATUS_OF_ONE_NODE: Final = ("addresses", "volumesAttached", "volumesInUse")


def multiply(manifests: Iterable[Manifest]) -> list[Manifest]:
    """*manifests*, those with the annotation `COUNT` so many times, with ``-1``, ``-2`` and so on after their names.

    Copies of an object from a dump are new objects. Copies of a node have host names, a CSINode and ResourceSlices of
    their own; copies of a pod belong to its workload, which is scaled by as many.

    Raises:
        ManifestError: counts that are none, and names that exist already.
    """
    given = list(manifests)
    problems: list[ManifestProblem] = []
    counts: list[int | None] = []
    total = 0
    for manifest in given:
        count = _count(manifest, problems)
        if count is not None and (total := total + count) > 5 * MOST_COPIES:
            text = f"all templates together make more than {5 * MOST_COPIES} objects"
            raise ManifestError([manifest.problem(text, _annotation_path(COUNT))])
        counts.append(count)
    if all(count is None for count in counts):
        if problems:
            raise ManifestError(problems)
        return given
    known = {_key(one) for one, count in zip(given, counts, strict=True) if count is None}
    made: list[Manifest] = []
    dependents, owners = NodeDependents.of(given), Owners.of(given)
    for manifest, count in zip(given, counts, strict=True):
        if count is None:
            made.append(manifest)
            continue
        if manifest.fields["kind"] == "Pod" and (why := owners.scale(manifest.fields, count)):
            problems.append(manifest.problem(why, _annotation_path(COUNT)))
            continue
        of_node = dependents.find(manifest.fields) if manifest.fields["kind"] == "Node" else None
        for copy in _copies(manifest, count, of_node):
            key, name = _key(copy), copy.fields["metadata"].get("name") or ""
            if len(name) > _LONGEST_NAME:
                problems.append(manifest.problem(f"is too long for {count} objects of this name", "metadata.name"))
                break
            if name and key in known:
                problems.append(manifest.problem(f"makes {name}, which exists already", _annotation_path(COUNT)))
                break
            known.add(key)
            made.append(copy)
            if of_node is not None:
                made += of_node.copies(name)
    if problems:
        raise ManifestError(problems)
    return made


def _annotation_path(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _count(manifest: Manifest, problems: list[ManifestProblem]) -> int | None:
    text = (manifest.fields["metadata"].get("annotations") or {}).get(COUNT)
    if text is None:
        return None
    wrong = ""
    if manifest.fields["apiVersion"] != "v1" or manifest.fields["kind"] not in ("Node", "Pod"):
        wrong = "only nodes and pods can have a count"
    elif not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= MOST_COPIES:
        wrong = f"must be a whole number from 1 to {MOST_COPIES}, not {shortened(repr(text))}"
    if wrong:
        problems.append(manifest.problem(wrong, _annotation_path(COUNT)))
        return None
    return int(text)


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest.fields["metadata"]
    return manifest.fields["kind"], metadata.get("namespace") or "", metadata.get("name") or ""


def _copies(manifest: Manifest, count: int, of_node: NodeParts | None) -> Iterator[Manifest]:
    encoded, kind = msgspec.json.encode(manifest.fields), manifest.fields["kind"]
    for number in range(1, count + 1):
        fields: Json = msgspec.json.decode(encoded)
        metadata = fields["metadata"]
        del metadata["annotations"][COUNT]
        is_dumped = any(name in metadata for name in _OF_ONE_OBJECT)
        for name in _OF_ONE_OBJECT:
            metadata.pop(name, None)
        name = metadata.get("name")
        if name:  # without one it has a generateName, and the server names each
            metadata["name"] = f"{name}-{number}"
        if kind == "Node":
            _renew_node(fields, of_node)
        elif is_dumped:
            for field_name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
                metadata.pop(field_name, None)
            fields["spec"].pop("nodeName", None)
            fields.pop("status", None)
        yield Manifest(fields, manifest.source, manifest.document, manifest.items)


def _renew_node(fields: Json, of_node: NodeParts | None) -> None:
    """What is of one machine only: its addresses, its host name, and where the volumes of its drivers can be."""
    labels = fields["metadata"].get("labels") or {}
    name = fields["metadata"].get("name")
    if name and HOST_NAME in labels:
        labels[HOST_NAME] = name
    if name and of_node:
        labels.update({key: name for key in of_node.topology_keys if labels.get(key) == of_node.node})
    for part, names in ((fields.get("spec"), _OF_ONE_NODE), (fields.get("status"), _STATUS_OF_ONE_NODE)):
        for name in names:
            (part or {}).pop(name, None)
