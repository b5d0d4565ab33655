"""Whether an API server would take the objects of manifests; all that is wrong with all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.errors import nearest_name
from trio_sched.go.text import shortened
from trio_sched.simulator.conversion.old_versions import in_current_version
from trio_sched.simulator.conversion.other_versions import as_checked, as_stored
from trio_sched.simulator.manifests.manifest_files import FoundFiles
from trio_sched.simulator.manifests.manifests import KUBERNETES_GROUPS, Manifest, ManifestError, ManifestProblem
from trio_sched.simulator.manifests.shared_parts import part_sharer
from trio_sched.simulator.registry.empty_parts import may_have_empty_parts, without_empty_parts
from trio_sched.simulator.registry.new_metadata import NAMED_BY_THE_SERVER
from trio_sched.simulator.registry.strategy import rules_of
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_MINOR
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry, custom_types
from trio_sched.simulator.validation.apiextensions.custom_schemas import decode_custom
from trio_sched.simulator.validation.meta.decoding import decode
from trio_sched.simulator.validation.meta.metadata import metadata_problems
from trio_sched.simulator.validation.meta.shapes import fields_of

_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_NOT_SIMULATED: Final = frozenset(
    {"CertificateSigningRequest", "ClusterTrustBundle", "ComponentStatus", "IPAddress", "PodCertificateRequest"}
    | {"ServiceCIDR", "StorageVersion", "StorageVersionMigration", "ValidatingAdmissionPolicy"}
    | {"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    | {"ResourcePoolStatusRequest"}
)
"""Kinds of Kubernetes that no scheduler and no controller here looks at."""
_LONGEST_VERSION: Final = 20
"""Digits of a resource version: it has 64 bits."""


@define(eq=False)
class CheckedManifests:
    """Manifests that can be stored.

    Attributes:
        manifests: in an order in which they can be stored.
        skipped: ``apiVersion Kind`` → how many objects were left out, since nothing here knows the kind.
        warnings: unknown fields that were left out.
        files: what was found beside the files with manifests.
    """

    manifests: list[Manifest] = field(factory=list)
    skipped: Counter[str] = field(factory=Counter)
    warnings: list[ManifestProblem] = field(factory=list)
    files: FoundFiles = field(factory=FoundFiles)


def check_manifests(
    manifests: Iterable[Manifest],
    problems: Iterable[ManifestProblem] = (),
    *,
    lenient: bool = False,
    strict: bool = False,
    known_definitions: Iterable[Json] = (),
    minor: int = DEFAULT_MINOR,
) -> CheckedManifests:
    """Check *manifests*, fill in what an API server fills in, and order them.

    Args:
        manifests: as `read_manifests` gives them; their fields are changed.
        problems: what is known to be wrong already.
        lenient: fields that are not known are left out with a warning. Those of dumps always are: the cluster may be
            of another version.
        strict: an object of a kind that is not known is an error.
        known_definitions: CustomResourceDefinitions that exist already.
        minor: the minor version of Kubernetes that reads them.

    Raises:
        ManifestError: everything that is wrong.
    """
    checker = _Checker(lenient=lenient, strict=strict, problems=list(problems), types=TypeRegistry(minor=minor))
    given = list(manifests)
    for definition in known_definitions:
        checker.note_definition(definition)
    for manifest in given:
        checker.note_definition(manifest.fields)
    for manifest in given:
        checker.check(manifest)
    skipped = checker.checked.skipped
    if skipped and not checker.checked.manifests and not checker.problems:
        text = f"no object is of a kind that is known here: {', '.join(sorted(skipped))}"
        checker.problems.append(ManifestProblem(text=shortened(text)))
    if checker.problems:
        raise ManifestError(checker.problems)
    checked = checker.checked
    if checker.outdated:
        checked.manifests = [one for one in checked.manifests if one not in checker.outdated]
    checked.manifests.sort(key=_rank)
    return checked


_FIRST_KINDS: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "ServiceAccount",
    "PriorityClass",
    "StorageClass",
    "DeviceClass",
    "CSIDriver",
    "LimitRange",
    "ResourceQuota",
    "Node",
    "CSINode",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ResourceSlice",
    "ResourceClaim",
    "PodDisruptionBudget",
    "CompositePodGroup",
    "PodGroup",
    "Service",
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
)
_RANK: Final = {kind: rank for rank, kind in enumerate(_FIRST_KINDS)}
_RANK_OF_OTHERS: Final = len(_FIRST_KINDS)
_RANK_OF_PODS: Final = _RANK_OF_OTHERS + 1


def _rank(manifest: Manifest) -> int:
    kind = manifest.fields["kind"]
    return _RANK_OF_PODS if kind == "Pod" else _RANK.get(kind, _RANK_OF_OTHERS)


@define(eq=False)
class _Checker:
    lenient: bool
    strict: bool
    problems: list[ManifestProblem]
    _types: TypeRegistry
    checked: CheckedManifests = field(factory=CheckedManifests)
    outdated: set[Manifest] = field(factory=set)
    """The older ones of objects that are there twice."""
    _seen: dict[tuple[str, str, str], Manifest] = field(factory=dict)
    _share_parts: Callable[[Json], None] = field(factory=part_sharer)

    def note_definition(self, fields: Json) -> None:
        """Know the kinds that *fields* define, if they are a definition."""
        if (fields.get("apiVersion"), fields.get("kind")) not in (_DEFINITION, (None, None)):
            return
        try:
            for resource in custom_types(fields):
                self._types.add(resource)
        except (KeyError, TypeError, AttributeError):
            pass  # `check` says what is wrong with it

    def check(self, manifest: Manifest) -> None:
        """Take *manifest*, skip it, or say what is wrong with it."""
        resource = self._resource_of(manifest)
        if resource is None:
            self._unknown(manifest)
            return
        if self._types.served(resource) is None:
            self._not_served(manifest, resource)
            return
        manifest.fields = as_checked(resource, manifest.fields)
        if not self._decode(manifest, resource):
            return
        metadata = manifest.fields["metadata"]
        if not resource.namespaced:
            metadata.pop("namespace", None)
        elif not metadata.get("namespace"):
            metadata["namespace"] = "default"
        manifest.fields = as_stored(resource, manifest.fields)
        rules = rules_of(resource)
        named = metadata if metadata.get("name") else {**metadata, "name": f"{metadata.get('generateName') or ''}xxxxx"}
        found = metadata_problems(resource.plural, named)
        has_empty_parts = not resource.custom and may_have_empty_parts(manifest.fields)
        rules.defaults(manifest.fields)
        found += rules.problems(manifest.fields)
        if "uid" not in metadata:  # one with a uid exists in the cluster that it was dumped from
            found += rules.sent_problems(manifest.fields)
        if found:
            self.problems += (manifest.problem(one.message, one.field) for one in found)
        elif self._is_new(manifest, resource):
            if has_empty_parts:
                manifest.fields = without_empty_parts(manifest.fields, resource.message)
                metadata = manifest.fields["metadata"]
            if resource.collection == "pods":
                self._share_parts(manifest.fields)
            metadata.pop("managedFields", None)  # much of a dump, and nobody's here
            self.checked.manifests.append(manifest)

    def _resource_of(self, manifest: Manifest) -> ResourceType | None:
        """What *manifest* is; an object of a dump may be of a version that was served once."""
        resource = self._types.of_kind(manifest.fields["apiVersion"], manifest.fields["kind"])
        if resource is None and _is_dumped(manifest.fields):
            current = in_current_version(manifest.fields)
            if current is not None:
                manifest.fields = current
                return self._types.of_kind(current["apiVersion"], current["kind"])
        return resource

    def _unknown(self, manifest: Manifest) -> None:
        api_version, kind = manifest.fields["apiVersion"], manifest.fields["kind"]
        group = api_version.rpartition("/")[0]
        is_custom = group not in KUBERNETES_GROUPS and "." in group  # groups of definitions are names of domains
        # What was dumped exists in a cluster, perhaps of another version; what was written may be a mistake.
        if not is_custom and kind not in _NOT_SIMULATED and not _is_dumped(manifest.fields):
            self.problems.append(manifest.problem(self._hint(api_version, kind), "kind"))
        elif self.strict:
            text = f"there is no CustomResourceDefinition of {shortened(kind)} in {shortened(api_version)}"
            self.problems.append(manifest.problem(text, "kind"))
        else:
            self.checked.skipped[f"{shortened(api_version)} {shortened(kind)}"] += 1

    def _not_served(self, manifest: Manifest, resource: ResourceType) -> None:
        """Skip an object of a kind that a server of another version had; refuse one that was written."""
        api_version, kind, minor = resource.api_version, resource.kind, self._types.minor
        if _is_dumped(manifest.fields):
            self.checked.skipped[f"{api_version} {kind}"] += 1
            return
        first, last = self._types.minors(resource)
        where = f" in {api_version}" if any(one.kind == kind for one in self._types) else ""
        other = first if first > minor else last
        text = f"Kubernetes 1.{minor} has no {kind}{where}; that of --kubernetes-version 1.{other} has it"
        self.problems.append(manifest.problem(text, "kind"))

    def _hint(self, api_version: str, kind: str) -> str:
        text = f"no kind {shortened(kind)} in {shortened(api_version)} is known"
        versions = [one.api_version for one in self._types if one.kind == kind]
        if versions:
            return f"{text}; write apiVersion: {versions[0]}"
        near = nearest_name(kind, {one.kind for one in self._types})
        return f"{text}; did you mean {near!r}?" if near else text

    def _decode(self, manifest: Manifest, resource: ResourceType) -> bool:
        """Whether the fields of *manifest* have the right types; those that are not known are gone afterwards."""
        fields, minor = manifest.fields, self._types.minor
        known = fields_of(resource.message)
        decoded = decode(fields, resource.message, minor) if known else decode_custom(fields, resource.schema)
        manifest.fields = decoded.fields
        if decoded.wrong or decoded.unknown:
            self.problems += (manifest.problem(one.text, one.path) for one in decoded.wrong)
            kept = self.checked.warnings if self.lenient or _is_dumped(fields) else self.problems
            kept += (manifest.problem(one.text, one.path) for one in decoded.unknown)
        if decoded.wrong:
            return False
        metadata = manifest.fields.setdefault("metadata", {})
        is_named = metadata.get("name") or metadata.get("generateName") or resource.collection in NAMED_BY_THE_SERVER
        if not is_named:
            self.problems.append(manifest.problem("Required value: name or generateName is required", "metadata.name"))
            return False
        return True

    def _is_new(self, manifest: Manifest, resource: ResourceType) -> bool:
        """Whether no newer manifest is of the same object; a dump may hold one twice, read at different times."""
        metadata = manifest.fields["metadata"]
        if not metadata.get("name"):
            return True
        key = (resource.collection, metadata.get("namespace") or "", metadata["name"])
        first = self._seen.setdefault(key, manifest)
        if first is manifest:
            return True
        before = first.fields["metadata"]
        # A pod may have been replaced by one of the same name between two requests.
        is_same = metadata.get("uid") == before.get("uid") or resource.collection == "pods"
        if not (metadata.get("uid") and before.get("uid") and is_same):
            where = first.problem("")
            place = f"{where.source}, line {where.line}" if where.line else where.source or "another manifest"
            self.problems.append(manifest.problem(f"the same object is in {place} already", "metadata.name"))
            return False
        if _version(metadata) <= _version(before):
            return False
        self._seen[key] = manifest
        self.outdated.add(first)
        return True


def _is_dumped(fields: Json) -> bool:
    """Whether an object, of which nothing is checked yet, has been in a cluster."""
    metadata = fields.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid"))


def _version(metadata: Json) -> int:
    text = metadata.get("resourceVersion") or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_VERSION else 0
