"""The loggers of plugins."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any, Final

PLUGIN_LOGGERS: Final = "trio_sched.plugins"
"""The parent of the loggers of plugins."""
_RESERVED: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class PluginLog(logging.LoggerAdapter[logging.Logger]):
    """Adds plugin and profile to every line, besides what is given in ``extra``."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Merge the fields; those called like an attribute of `logging.LogRecord` get a ``_`` behind their names."""
        given = kwargs.get("extra") or {}
        fields = {f"{name}_" if name in _RESERVED else name: value for name, value in given.items()}
        kwargs["extra"] = {**(self.extra or {}), **fields}
        return msg, kwargs


def plugin_log(plugin: str, profile: str) -> PluginLog:
    """The logger that the handle of *plugin* in *profile* offers."""
    return PluginLog(logging.getLogger(f"{PLUGIN_LOGGERS}.{plugin}"), {"plugin": plugin, "profile": profile})
