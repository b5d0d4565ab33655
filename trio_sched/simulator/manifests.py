"""Reads manifests and dumps of clusters from files; `check_manifests` says what is wrong with what they hold."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from attrs import define, evolve, field, frozen

from trio_sched.documents.errors import DocumentError, shortened
from trio_sched.documents.files import decode_text, read_bytes, read_stream
from trio_sched.documents.go_text import printable
from trio_sched.documents.plain import read_plain
from trio_sched.documents.positions import find, root_of_document, root_of_item
from trio_sched.documents.yaml_nodes import Node
from trio_sched.errors import TrioSchedError

Json = dict[str, Any]
Source = Path | str | IO[str]

MAX_BYTES: Final = 1 << 30
"""The greatest size of a file; a dump of a cluster with 100,000 pods has some 400 MiB."""
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The files of a folder that are read."""
_MOST_ENTRIES: Final = 50_000
"""More than the dump of any cluster has; a folder with more is the wrong one."""
_SHOWN_PROBLEMS: Final = 100
_SHOWN_TEXT: Final = 600


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


class ManifestError(TrioSchedError):
    """Manifests that cannot be read or stored; everything that is wrong with them, file by file and line by line."""

    def __init__(self, problems: Iterable[ManifestProblem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: (one.source, one.document, one.line)))
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
class SourceText:
    """A file that manifests were read from, which can be read again."""

    name: str
    _read: Callable[[], str]
    _roots: dict[tuple[int, tuple[int, ...]], Node | None] = field(factory=dict, init=False)

    def text(self) -> str:
        """What it holds.

        Raises:
            OSError: it cannot be read.
            DocumentError: it is no text.
        """
        return self._read()

    def root(self, document: int, items: tuple[int, ...]) -> Node | None:
        """The node of an object; None if it cannot be found."""
        key = (document, items)
        if key not in self._roots:
            try:
                text = self._read()
            except (OSError, ValueError, DocumentError):
                return None
            root = root_of_item(text, items[0]) if items else None
            if root is not None:
                items = items[1:]
            else:
                root = root_of_document(text, document)
            for item in items:
                root = root and find(root, f"items[{item}]")
            self._roots = {key: root}  # of one object at a time: there may be many
        return self._roots[key]


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


def read_manifests(sources: Iterable[Source]) -> tuple[list[Manifest], list[ManifestProblem]]:
    """Every object of *sources*, and what could not be read.

    Args:
        sources: files (YAML or JSON, many documents, lists of objects), folders of such files, or open texts.
    """
    found: list[Manifest] = []
    problems: list[ManifestProblem] = []
    names: list[str] = []
    for source in sources:
        names.append(_name_of(source))
        for text in _texts(source, problems):
            _read_text(text, found, problems)
    if not found and not problems:
        problems = [ManifestProblem(text="holds no object", source=name) for name in names]
    return found, problems


def _name_of(source: Source) -> str:
    return str(source) if isinstance(source, Path | str) else getattr(source, "name", "<text>")


def _texts(source: Source, problems: list[ManifestProblem]) -> Iterator[SourceText]:
    """Every file that *source* stands for."""
    name = _name_of(source)
    if not isinstance(source, Path | str):
        try:
            # Bytes where there are any, so that a wrong encoding is reported as in a file.
            content = read_stream(source.buffer, max_bytes=MAX_BYTES) if hasattr(source, "buffer") else source.read()
        except OSError as error:
            problems.append(ManifestProblem(text=f"cannot be read: {error.strerror or error}", source=name))
        else:
            yield SourceText(name, lambda: content if isinstance(content, str) else decode_text(content))
        return
    path = Path(source)
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        problems.append(_unreadable(name, error))
        return
    if not is_folder:
        yield _file(path)
        return
    known = len(problems)
    files = _files_in(path, problems)
    if not files and len(problems) == known:
        text = f"no file in this folder ends in {', '.join(SUFFIXES)}"
        problems.append(ManifestProblem(text=text, source=name))
    for file in files:
        yield _file(file)


def _files_in(path: Path, problems: list[ManifestProblem]) -> list[Path]:
    """The files with manifests in a folder and those in it, but for hidden ones."""
    files: list[Path] = []
    entries = 0

    def note(error: OSError) -> None:
        problems.append(_unreadable(str(error.filename or path), error))

    for folder, folders, names in os.walk(path, onerror=note):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        files += (Path(folder, one) for one in sorted(names) if one.endswith(SUFFIXES) and not one.startswith("."))
        entries += len(names) + len(folders)
        if entries > _MOST_ENTRIES:
            text = f"there are more than {_MOST_ENTRIES} files and folders in it; name the one with the manifests"
            problems.append(ManifestProblem(text=text, source=str(path)))
            return []
    return files


def _file(path: Path) -> SourceText:
    content: list[bytes] = []

    def read() -> str:
        # A pipe can be read only once.
        if content:
            return decode_text(content[0])
        found = read_bytes(path, max_bytes=MAX_BYTES)
        if not path.is_file():
            content.append(found)
        return decode_text(found)

    return SourceText(str(path), read)


def _unreadable(name: str, error: OSError | ValueError) -> ManifestProblem:
    reason = error.strerror if isinstance(error, OSError) else "invalid argument"  # a NUL in the path
    return ManifestProblem(text=f"cannot be read: {reason}", source=name)


def _read_text(source: SourceText, found: list[Manifest], problems: list[ManifestProblem]) -> None:
    document = 1
    try:
        for read in read_plain(source.text()):
            problems += (
                ManifestProblem(text=duplicate, source=source.name, document=document, line=read.line)
                for duplicate in read.duplicates
            )
            if read.value is not None:
                _unpack(Manifest(read.value, source, document), found, problems)
            document += 1
    except (OSError, ValueError) as error:
        problems.append(_unreadable(source.name, error))
    except DocumentError as error:
        line, column = error.line, error.column
        problems.append(
            ManifestProblem(text=error.problem, source=source.name, document=document, line=line, column=column)
        )


def _unpack(
    manifest: Manifest, found: list[Manifest], problems: list[ManifestProblem], typed: Json | None = None
) -> None:
    """Add the objects of one document to *found*: itself, or the items of the list it is."""
    value: Any = manifest.fields
    if not isinstance(value, dict):
        manifest.fields = {}
        problems.append(evolve(manifest.problem(f"expected an object, found {_word(value)}"), what=""))
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
