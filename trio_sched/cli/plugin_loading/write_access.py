"""Who can change the files that plugins are imported from: whoever can runs as the scheduler."""

import logging
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

log = logging.getLogger(__name__)

_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_ROOT: Final = 0


@frozen
class OpenPath:
    """A file or folder that others can change."""

    path: str
    mode: int
    owner: int

    @property
    def mend(self) -> str:
        """The command that closes it."""
        change = "chmod go-w" if self.mode & _OTHERS else f"chown {os.geteuid()}"
        return f"{change} {shlex.quote(self.path)}"


def warn_of_write_access(files: Sequence[str], folders: Sequence[str]) -> None:
    """Log a warning for each of *files* and *folders* that others can change, or what is in or above it."""
    for given in (*folders, *files):
        found = list(open_paths(given))
        if found:
            first = found[0]
            more = {"more": len(found) - 1} if found[1:] else {}
            fields = {
                "plugins": given,
                "path": first.path,
                "mode": f"{stat.S_IMODE(first.mode):04o}",
                "owner": first.owner,
                "mend": first.mend,
            }
            log.warning("Others can change what is imported as plugins", extra=fields | more)


def open_paths(given: str) -> Iterator[OpenPath]:
    """What others can change of the file or folder *given*, of what is in that folder, and of the folders above."""
    if "\0" in given:  # no path
        return
    own = {os.path.abspath(given), os.path.realpath(given)}
    above = {parent for path in own for parent in _parents(path)} - own
    yield from _open(sorted(above), sticky_is_enough=True)
    yield from _open(sorted(own), sticky_is_enough=False)
    try:
        with os.scandir(given) as entries:
            within = sorted(entry.path for entry in entries if entry.name.endswith(".py") or entry.is_dir())
    except (OSError, ValueError):  # a file, or nothing that could be imported: that is said elsewhere
        return
    yield from _open(within, sticky_is_enough=False)


def _open(paths: Iterable[str], *, sticky_is_enough: bool) -> Iterator[OpenPath]:
    for path in paths:
        try:
            status = os.stat(path)
            if os.statvfs(path).f_flag & os.ST_RDONLY:  # a ConfigMap, for instance, whose folder has mode 0777
                continue
        except (OSError, ValueError):
            continue
        is_closed = not status.st_mode & _OTHERS or (sticky_is_enough and status.st_mode & stat.S_ISVTX)
        if not is_closed or status.st_uid not in (_ROOT, os.geteuid()):
            yield OpenPath(path, status.st_mode, status.st_uid)


def _parents(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        path = parent
        yield path
