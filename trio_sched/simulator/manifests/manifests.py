"""Reads manifests and dumps of clusters from files; `check_manifests` says what is wrong with what they hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import define, evolve, field, frozen

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.json_values import Json
from trio_sched.documents.plain import read_plain
from trio_sched.documents.positions import find
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable, shortened
from trio_sched.simulator.manifests.manifest_files import (
    FoundFiles,
    Source,
    SourceText,
    files_of,
    name_of,
    why_unreadable,
)

_SHOWN_PROBLEMS: Final = 100
_SHOWN_TEXT: Final = 600
_CAUSES: Final = {
    "\n==== START logs for container ": "this is an output of `kubectl cluster-info dump`, which has logs in it; write "
    "`kubectl cluster-info dump -A -o json --output-directory=FOLDER` and give the folder",
    "{{": "this looks like a template of Helm or the like; render it first (helm template) and give the result",
    "{%": "this looks like a template of Jinja or the like; render it first and give the result",
}
"""What texts contain that are no manifests → what to do."""
KUBERNETES_GROUPS: Final = frozenset(
    {"", "apps", "autoscaling", "batch", "extensions", "policy", "rbac.authorization.k8s.io"}
    | {"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io"}
    | {f"{name}.k8s.io" for name in ("admissionregistration", "apiextensions", "apiregistration", "authentication")}
    | {f"{name}.k8s.io" for name in ("authorization", "certificates", "coordination", "discovery", "events")}
    | {f"{name}.k8s.io" for name in ("networking", "node", "resource", "scheduling", "storage", "storagemigration")}
)
"""The groups of Kubernetes itself; a kind of any other is a custom resource."""


@frozen(kw_only=True)
class ManifestProblem:
    """One thing that is wrong with manifests.

    Attributes:
        source: the file; empty if the manifest is from no file.
        document: which of its documents, from 1; 0 if that is not known.
        line: where, from 1; 0 if that is not known.
        column: where in that line; 0 if that is not known.
        what: the object, like ``Pod default/web``; empty if it is about the file.
        path: the field, like ``spec.containers[0].image``; empty if it is about the object.
    """

    text: str
    source: str = ""
    document: int = 0
    line: int = 0
    column: int = 0
    what: str = ""
    path: str = ""

    def __str__(self) -> str:
        where = printable(self.source)
        if self.line:
            where += f", line {self.line}" + (f", column {self.column}" if self.column else "")
        if self.document:
            where += f" (document {self.document})"
        return ": ".join(part for part in (where, self.what, self.path, self.text) if part)


def _place_of(problem: ManifestProblem) -> tuple[str, int, float]:
    return problem.source, problem.document, problem.line or math.inf


class ManifestError(TrioSchedError):
    """Manifests that cannot be read or stored; everything that is wrong with them, file by file and line by line."""

    def __init__(self, problems: Iterable[ManifestProblem]) -> None:
        self.problems = tuple(sorted(problems, key=_place_of))
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        files = len({problem.source for problem in self.problems})
        shown = [f"  {problem}" for problem in self.problems[:_SHOWN_PROBLEMS]]
        if more := len(self.problems) - len(shown):
            shown.append(f"  and {more} more")
        return "\n".join([f"{len(self.problems)} problems in {files} file{'s' * (files != 1)}:", *shown])


@define(eq=False)
class Manifest:
    """One object as it was read.

    Attributes:
        fields: all of it; it becomes the store's.
        source: where it is from; None: from no file.
        document: which document of the file, from 1.
        items: if the document is a list: which of its items, and which of theirs if that is a list.
    """

    fields: Json
    source: SourceText | None = None
    document: int = 0
    items: tuple[int, ...] = ()

    @property
    def built_in_kind(self) -> str:
        """Its kind; empty for custom resources, which can be called as any other."""
        kind: str = self.fields["kind"]
        return kind if self.fields["apiVersion"].rpartition("/")[0] in KUBERNETES_GROUPS else ""

    @property
    def what(self) -> str:
        """The object in words: ``Pod default/web``."""
        metadata = self.fields.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        names = [metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")]
        name = "/".join(name for name in names if isinstance(name, str) and name)
        return shortened(printable(f"{self.fields.get('kind')} {name}".strip()))

    def problem(self, text: str, path: str = "") -> ManifestProblem:
        """*text* about the field at *path*; what a mistake of 10,000 characters says is cut."""
        text, path = shortened(text, _SHOWN_TEXT), shortened(path)
        if self.source is None:
            return ManifestProblem(text=text, what=self.what, path=path)
        root = self.source.root(self.document, self.items)
        line = find(root, path).line if root is not None else 0
        return ManifestProblem(
            text=text, source=self.source.name, document=self.document, line=line, what=self.what, path=path
        )


@define(eq=False)
class ReadManifests:
    """What was read.

    Attributes:
        manifests: every object.
        problems: what could not be read.
        files: what was found beside it.
    """

    manifests: list[Manifest] = field(factory=list)
    problems: list[ManifestProblem] = field(factory=list)
    files: FoundFiles = field(factory=FoundFiles)


def read_manifests(sources: Iterable[Source], note: Callable[[str], None] = lambda _name: None) -> ReadManifests:
    """Every object of *sources*, and what could not be read.

    Args:
        sources: files (YAML or JSON, many documents, lists of objects), folders of such files, or open texts.
        note: takes the name of each file before it is read.
    """
    read = ReadManifests()
    names: list[str] = []
    for source in sources:
        names.append(name_of(source))
        for text in files_of(source, read.files):
            note(text.name)
            _read_text(text, read)
    read.problems += (ManifestProblem(text=text, source=name) for name, text in read.files.unreadable)
    if not read.manifests and not read.problems:
        read.problems += (ManifestProblem(text="holds no object", source=name) for name in names)
    return read


def _read_text(source: SourceText, read: ReadManifests) -> None:
    document = 1
    found: list[Manifest] = []
    problems: list[ManifestProblem] = []
    values: list[Any] = []
    try:
        for one in read_plain(source.text()):
            problems += (
                ManifestProblem(text=duplicate.problem, source=source.name, document=document, line=duplicate.line)
                for duplicate in one.duplicates
            )
            if one.value is not None:
                values.append(one.value)
                _unpack(Manifest(one.value, source, document), found, problems)
            document += 1
    except (OSError, ValueError) as error:
        problems.append(ManifestProblem(text=why_unreadable(error), source=source.name))
    except DocumentError as error:
        line, column = error.line, error.column
        text = f"{error.problem}{_likely_cause(source)}"
        problems.append(ManifestProblem(text=text, source=source.name, document=document, line=line, column=column))
    else:
        # Folders have files of other kinds: values of charts, pipelines, packages. Broken manifests are no such files.
        if source.is_found and values and not any(map(_may_be_manifest, values)):
            read.files.no_manifests.append(source.name)
            return
    read.manifests += found
    read.problems += problems


def _may_be_manifest(value: Any) -> bool:
    return isinstance(value, dict) and any(name in value for name in ("apiVersion", "kind", "metadata"))


def _likely_cause(source: SourceText) -> str:
    """Why *source* may be neither YAML nor JSON, with what to do; empty if that is not known."""
    try:
        text = source.text()
    except (OSError, ValueError, DocumentError):
        return ""
    for sign, cause in _CAUSES.items():
        if sign in text:
            return f"; {cause}"
    return ""


def _unpack(
    manifest: Manifest, found: list[Manifest], problems: list[ManifestProblem], typed: Json | None = None
) -> None:
    """Add the objects of one document to *found*: itself, or the items of the list it is."""
    value: Any = manifest.fields
    if not isinstance(value, dict):
        manifest.fields = {}
        hint = "; write {apiVersion: v1, kind: List, items: [...]} around it" if isinstance(value, list) else ""
        problems.append(evolve(manifest.problem(f"expected an object, found {_word(value)}{hint}"), what=""))
        return
    if typed:
        value = manifest.fields = {**typed, **value}
    for name in ("apiVersion", "kind"):
        given = value.get(name)
        if not isinstance(given, str) or not given:
            what = "missing" if given in (None, "") else "no text; put it in quotes"
            problems.append(evolve(manifest.problem(f"{name} is {what}", name), what="", path=""))
            return
    kind, metadata = value["kind"], value.get("metadata")
    is_named = isinstance(metadata, dict) and ("name" in metadata or "generateName" in metadata)
    if not kind.endswith("List") or is_named:
        found.append(manifest)
        return
    if not isinstance(items := value.get("items") or [], list):
        problems.append(manifest.problem(f"must be a list, not {_word(items)}", "items"))
        return
    # Items of a typed list do not repeat kind and version.
    typed = {} if kind == "List" else {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        one = Manifest(item, manifest.source, manifest.document, (*manifest.items, index))
        _unpack(one, found, problems, typed)


def _word(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case dict():
            return "a mapping"
    return "a list" if isinstance(value, list) else "nothing"
