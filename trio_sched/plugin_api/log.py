"""The log of a plugin: what ``handle.log`` offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Log(Protocol):
    """A `logging.LoggerAdapter`; what it takes besides this works as well.

    Messages are formatted with ``%``, and only if they are shown: ``log.info("data is %d s old", age)``. Entries of
    *extra* become fields of the line.
    """

    def debug(self, message: str, /, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log what is shown from ``-v=10`` on."""
        ...

    def info(self, message: str, /, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log what is always shown."""
        ...

    def warning(self, message: str, /, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log what is not as it should be, though the plugin goes on."""
        ...

    def error(self, message: str, /, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log what has failed."""
        ...

    def exception(self, message: str, /, *args: object, extra: Mapping[str, object] | None = None) -> None:
        """Log an error with the exception that is being handled and its traceback."""
        ...
