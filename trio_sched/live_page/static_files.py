"""The files of the page: read once, with what HTTP has to say of each."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Final

from attrs import frozen

PAGE: Final = "page.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@frozen
class StaticFile:
    """One file."""

    content: bytes
    zipped: bytes
    """The same, compressed."""
    media_type: str
    tag: str
    """The entity tag: another one for other contents."""


@lru_cache(maxsize=1)
def static_files() -> dict[str, StaticFile]:
    """All files by their names."""
    found = {}
    for path in files(__package__).joinpath("static").iterdir():
        media_type = _TYPES.get(path.name[path.name.rfind(".") :])
        if media_type is not None:
            content = path.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            found[path.name] = StaticFile(content, gzip.compress(content, mtime=0), media_type, tag)
    return found
