"""Records without the names of objects and the values of labels: keyed hashes stand for their words.

A word, what is between two punctuation marks, has the same hash wherever it is, so that what refers to each other still
does, also where one name is made of others: the claim ``POD-VOLUME`` of an ephemeral volume. Whoever does not have the
key, which is nowhere written, cannot try out which word has a hash.

As they were stay: numbers (``Gt`` and ``Lt`` compare them), what every cluster has, names of classes, drivers, devices
and resources, keys of labels, and taints.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
import yaml
from attrs import define, field
from msgspec import Raw, structs

from trio_sched.recording.records import (
    PATCHED,
    Asked,
    Changed,
    Configured,
    Decided,
    Existed,
    FirstList,
    GroupTried,
    OnNodes,
    PlacesReleased,
    Record,
    Requeued,
    Reserved,
    Templates,
    decode_records,
    encode_records,
)

KEY_BYTES: Final = 16
_DIGEST_BYTES: Final = 5
"""Short, since a name has several and some must not be longer than 63 letters; of words, few collide, of names none."""
_MAX_KNOWN: Final = 1 << 16
"""So many hashes are kept, so that they need not be computed again."""

_KEPT_KINDS: Final = frozenset({"CSIDriver", "DeviceClass", "PriorityClass", "StorageClass"})
"""Kinds whose names do not tell whose they are; other fields refer to them in many ways."""
_KEPT: Final = frozenset({"true", "false", "latest", "default", "kube", "system", "public", "node", "lease"})
"""Words that every cluster has in names of namespaces and images, and in labels."""
_NAMES: Final = frozenset(
    {
        "claimName",
        "generateName",
        "hostname",
        "image",
        "names",
        "namespace",
        "namespaces",
        "nodeName",
        "nominatedNodeName",
        "parentCompositePodGroupName",
        "persistentVolumeName",
        "podGroupName",
        "podGroupTemplateName",
        "pool",
        "reference",
        "resourceClaimName",
        "resourceClaimTemplateName",
        "serviceAccountName",
        "subdomain",
        "templateName",
        "volume.kubernetes.io/selected-node",
        "volumeHandle",
        "volumeName",
        "workloadName",
    }
)
"""Fields that are names, or lists of them, wherever they are; ``names`` and ``reference`` are of images."""
_NAMED: Final = frozenset(
    {
        "claimRef",
        "containerStatuses",
        "containers",
        "controllerRef",
        "ephemeralContainers",
        "initContainerStatuses",
        "initContainers",
        "metadata",
        "ownerReferences",
        "pool",
        "reservedFor",
        "volumeMounts",
        "volumes",
    }
)
"""Fields with objects, or lists of them, whose field ``name`` is one."""
_LABELS: Final = frozenset({"labels", "matchLabels", "nodeSelector", "selector"})
_EXPRESSIONS: Final = frozenset({"matchExpressions", "matchFields", "matchLabelExpressions"})
_NUMERIC_OPERATORS: Final = frozenset({"Gt", "Lt"})
_replace_words: Final = re.compile(r"[^\W_]+").sub


@define(eq=False)
class NameHasher:
    """Replaces names in the records of one run.

    Args:
        key: of the hashes, `KEY_BYTES` long; to be drawn for the run and not to be kept.
    """

    _key: bytes
    hash: Callable[[str], str] = field(init=False)
    """What stands for a name or the value of a label."""

    def __attrs_post_init__(self) -> None:
        self.hash = lru_cache(_MAX_KNOWN)(partial(_replace_words, self._hash_of_word))

    def _hash_of_word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word in _KEPT or word.isdecimal():
            return word
        digest = blake2b(word.encode(errors="surrogatepass"), key=self._key, digest_size=_DIGEST_BYTES).digest()
        return "h" + b32encode(digest).decode().lower()

    def replace(self, lines: bytes) -> bytes:
        """Records as they are written, without names.

        Raises:
            MsgspecError: one is no record.
        """
        return encode_records(map(self._without_names, decode_records(lines)))

    def _without_names(self, record: Record) -> Record:
        match record:
            case Configured():
                return structs.replace(record, configuration=self._configuration(record.configuration))
            case Templates():
                return structs.replace(record, pods={number: self._raw(one) for number, one in record.pods.items()})
            case FirstList():
                return structs.replace(record, objects=[self._object(record.kind, one) for one in record.objects])
            case Changed():
                return structs.replace(record, changes=[self._change(record.kind, *one) for one in record.changes])
            case OnNodes():
                return structs.replace(record, pods=[(uid, self.hash(node), held) for uid, node, held in record.pods])
            case Existed():
                return structs.replace(record, nominated={uid: self.hash(on) for uid, on in record.nominated.items()})
            case Decided():
                asked = None if record.asked is None else self._asked(record.asked)
                return structs.replace(record, node=self.hash(record.node), asked=asked)
            case GroupTried():
                places = [(self.hash(node), plugins) for node, plugins in record.places]
                asked_about = [(uid, self._asked(asked)) for uid, asked in record.asked]
                return structs.replace(record, key=self.hash(record.key), places=places, message="", asked=asked_about)
            case PlacesReleased():
                return structs.replace(record, key=self.hash(record.key))
            case Reserved():
                return structs.replace(record, node=self.hash(record.node))
            case Requeued():
                nominated = None if record.nominated is None else self.hash(record.nominated)
                return structs.replace(record, nominated=nominated)
        return record

    def _asked(self, asked: Asked) -> Asked:
        scores = {self.hash(node): score for node, score in asked.scores.items()}
        return structs.replace(asked, left=[self.hash(node) for node in asked.left], scores=scores)

    def _configuration(self, text: str) -> str:
        """The configuration with other labels in the affinity that it adds to pods."""
        if "addedAffinity" not in text:
            return text
        return str(yaml.safe_dump(self._configured(yaml.safe_load(text)), sort_keys=False))

    def _configured(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._configured(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            name: self._value(one) if name == "addedAffinity" else self._configured(one) for name, one in value.items()
        }

    # --- objects ----------------------------------------------------------------------------------------------------

    def _raw(self, raw: Raw) -> Raw:
        return Raw(msgspec.json.encode(self._value(msgspec.json.decode(raw))))

    def _object(self, kind: str, raw: Raw) -> Raw:
        if kind == "Pod":
            number, name, namespace, uid, version, created, node, metadata, *others = msgspec.json.decode(raw)
            identity = [self.hash(name), self.hash(namespace), uid, version, created, self.hash(node)]
            return Raw(
                msgspec.json.encode([number, *identity, self._field("metadata", metadata), *map(self._value, others)])
            )
        if kind not in _KEPT_KINDS:
            return self._raw(raw)
        fields = msgspec.json.decode(raw)
        name = fields["metadata"]["name"]
        fields = self._value(fields)
        fields["metadata"]["name"] = name
        return Raw(msgspec.json.encode(fields))

    def _change(self, kind: str, how: str, raw: Raw) -> tuple[str, Raw]:
        if how == PATCHED:
            name, namespace, version, labels, metadata, spec, node, status = msgspec.json.decode(raw)
            identity = [self.hash(name), self.hash(namespace), version, self._field("labels", labels)]
            parts = [self._field("metadata", metadata), self._value(spec), self.hash(node), self._value(status)]
            return how, Raw(msgspec.json.encode([*identity, *parts]))
        if how == "DELETED" and kind == "Pod":  # its identity, no pod of a template
            return how, self._raw(raw)
        return how, self._object(kind, raw)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._field(name, one) for name, one in value.items()}
        return [self._value(one) for one in value] if isinstance(value, list) else value

    def _field(self, name: str, value: Any) -> Any:
        """The field *name* of an object, without names."""
        if name in _NAMES and not isinstance(value, dict):
            return self._all(value)
        if name in _NAMED:
            objects = value if isinstance(value, list) else [value]
            named = [self._named(one) if isinstance(one, dict) else self._value(one) for one in objects]
            return named if isinstance(value, list) else named[0]
        if name in _LABELS and _is_text_to_text(value):
            return {key: self.hash(text) for key, text in value.items()}
        if name in _EXPRESSIONS and isinstance(value, list):
            return [self._expression(one) for one in value]
        if name == "message" and isinstance(value, str):
            return ""
        return self._value(value)

    def _all(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._all(one) for one in value]
        return self.hash(value) if isinstance(value, str) else self._value(value)

    def _named(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self._value(fields)
        if isinstance(fields.get("name"), str):
            found["name"] = self.hash(fields["name"])
        return found

    def _expression(self, rule: Any) -> Any:
        if not isinstance(rule, dict) or rule.get("operator") in _NUMERIC_OPERATORS:
            return rule
        return {**rule, "values": self._all(rule["values"])} if rule.get("values") else rule


def _is_text_to_text(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
