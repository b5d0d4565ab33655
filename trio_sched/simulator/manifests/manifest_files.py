"""Finds the files that manifests are read from: single ones, those of folders, texts; compressed ones too."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from attrs import define, field

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import UnsuitableFile, decode_text, read_bytes, read_stream
from trio_sched.documents.positions import find, root_of_document, root_of_item
from trio_sched.documents.yaml_nodes import Node

Source = Path | str | IO[str]

MAX_BYTES: Final = 1 << 30
"""The greatest size of a file, unpacked; a dump of a cluster with 100,000 pods has some 400 MiB."""
SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")
"""The files of a folder that are read, also with `_PACKED` behind it."""
_PACKED: Final = ".gz"
_GZIP: Final = b"\x1f\x8b"
_MOST_ENTRIES: Final = 50_000
"""More than the dump of any cluster has; a folder with more is the wrong one."""
_MOST_SEARCHED: Final = 500_000_000
"""Characters of one file that are searched for the places of mistakes, some 20 ns each."""
_CHART: Final = "Chart.yaml"
_KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})


@define(eq=False)
class SourceText:
    """A file that manifests were read from, which can be read again.

    Attributes:
        is_found: it was found in a folder and may be anything; False: it was named.
    """

    name: str
    _read: Callable[[], str]
    is_found: bool = False
    _roots: dict[tuple[int, tuple[int, ...]], Node | None] = field(factory=dict, init=False)
    _searched: int = field(default=0, init=False)

    def text(self) -> str:
        """What it holds.

        Raises:
            OSError: it cannot be read.
            DocumentError: it is no text.
        """
        return self._read()

    def root(self, document: int, items: tuple[int, ...]) -> Node | None:
        """The node of an object; None if it cannot be found, or not soon: when there is a mistake in every object."""
        key = (document, items)
        if key not in self._roots:
            if self._searched > _MOST_SEARCHED:
                return None
            try:
                text = self._read()
            except (OSError, ValueError, DocumentError):
                return None
            self._searched += len(text)
            root = root_of_item(text, items[0]) if items and document == 1 else None
            if root is not None:
                items = items[1:]
            else:
                root = root_of_document(text, document)
            for item in items:
                root = root and find(root, f"items[{item}]")
            self._roots = {key: root}  # of one object at a time: there may be many
        return self._roots[key]


@define(eq=False)
class FoundFiles:
    """What was found beside files to read.

    Attributes:
        unreadable: name, and why it cannot be read.
        charts: folders with Helm charts, which are not read.
        kustomized: folders with kustomizations, which are not applied.
        no_manifests: files of folders that turned out to hold none; the reader fills it.
    """

    unreadable: list[tuple[str, str]] = field(factory=list)
    charts: list[str] = field(factory=list)
    kustomized: list[str] = field(factory=list)
    no_manifests: list[str] = field(factory=list)


def name_of(source: Source) -> str:
    """What messages call *source*."""
    return str(source) if isinstance(source, Path | str) else getattr(source, "name", "<text>")


def files_of(source: Source, found: FoundFiles) -> Iterator[SourceText]:
    """Every file that *source* stands for; *found* takes what else there is."""
    name = name_of(source)
    if not isinstance(source, Path | str):
        try:
            # Bytes where there are any, so that a wrong encoding is reported as in a file.
            content = read_stream(source.buffer, max_bytes=MAX_BYTES) if hasattr(source, "buffer") else source.read()
        except OSError as error:
            found.unreadable.append((name, f"cannot be read: {error.strerror or error}"))
        else:
            yield SourceText(name, lambda: content if isinstance(content, str) else _text_of(content))
        return
    path = Path(source)
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        found.unreadable.append((name, why_unreadable(error)))
        return
    if not is_folder:
        yield _file(path)
        return
    before = len(found.unreadable)
    files = _files_in(path, found)
    if not files and len(found.unreadable) == before:
        found.unreadable.append((name, _nothing_in(name, found)))
    for file in files:
        yield _file(file, is_found=True)


def why_unreadable(error: OSError | ValueError) -> str:
    """In words."""
    return f"cannot be read: {error.strerror if isinstance(error, OSError) else 'invalid argument'}"  # NUL in the path


def _nothing_in(name: str, found: FoundFiles) -> str:
    if name in found.charts:
        return f"is a Helm chart; write `helm template {name} > manifests.yaml` and give that file"
    return f"no file in this folder ends in {', '.join(SUFFIXES)}"


def _files_in(path: Path, found: FoundFiles) -> list[Path]:
    """The files with manifests in a folder and those in it, but for hidden ones and Helm charts."""
    files: list[Path] = []
    entries = 0

    def note(error: OSError) -> None:
        found.unreadable.append((str(error.filename or path), why_unreadable(error)))

    for folder, folders, names in os.walk(path, onerror=note):
        entries += len(names) + len(folders)
        if entries > _MOST_ENTRIES:
            text = f"there are more than {_MOST_ENTRIES} files and folders in it; name the one with the manifests"
            found.unreadable.append((str(path), text))
            return []
        if _CHART in names:  # its templates are no YAML, and its values no manifests
            found.charts.append(folder)
            folders.clear()
            continue
        if not _KUSTOMIZATIONS.isdisjoint(names):
            found.kustomized.append(folder)
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        files += (Path(folder, one) for one in sorted(names) if _is_wanted(one))
    return files


def _is_wanted(name: str) -> bool:
    return name.removesuffix(_PACKED).endswith(SUFFIXES) and not name.startswith(".")


def _file(path: Path, *, is_found: bool = False) -> SourceText:
    content: list[bytes] = []

    def read() -> str:
        # A pipe can be read only once.
        if content:
            return _text_of(content[0])
        found = read_bytes(path, max_bytes=MAX_BYTES)
        if not path.is_file():
            content.append(found)
        return _text_of(found)

    return SourceText(str(path), read, is_found)


def _text_of(content: bytes) -> str:
    """*content*, unpacked if need be.

    Raises:
        UnsuitableFile: it cannot be unpacked, or is too large then.
        DocumentError: it is no text.
    """
    text = decode_text(_unpacked(content) if content.startswith(_GZIP) else content)
    return text.removeprefix("\ufeff")  # JSON is read as such only without it


def _unpacked(content: bytes) -> bytes:
    pieces: list[bytes] = []
    room = MAX_BYTES
    while content:  # gzip files may be joined
        unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            pieces.append(unpacker.decompress(content, room + 1))
        except zlib.error as error:
            raise UnsuitableFile(f"it begins as gzip does, but cannot be unpacked: {error}") from error
        room -= len(pieces[-1])
        if room < 0:
            raise UnsuitableFile(f"it is larger than {MAX_BYTES} bytes when it is unpacked")
        if not unpacker.eof:
            raise UnsuitableFile("it is packed with gzip, and its end is missing")
        content = unpacker.unused_data
        if not content.startswith(_GZIP):  # padding, as of tapes
            break
    return b"".join(pieces)
