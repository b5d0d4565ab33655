"""What the flags about metrics ask for; a mistake in them costs a line in the log, as in kube-scheduler."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from trio_sched.cli.flags import METRIC_LABEL, Flags
from trio_sched.daemon.metrics.options import MetricsOptions
from trio_sched.documents.errors import shortened
from trio_sched.documents.files import decode_text, read_bytes
from trio_sched.documents.go_text import quote
from trio_sched.documents.plain import read_plain
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.files import UNREADABLE, describe_open_error

log = logging.getLogger(__name__)

MANIFEST_KEY: Final = "allowListMapping"
"""Under which a manifest may have its entries; without it the whole of it are entries, as kube-scheduler reads it."""
MAX_MANIFEST_BYTES: Final = 1024 * 1024


def metrics_options(flags: Flags, *, watch_event_loop: bool) -> MetricsOptions:
    """The options that *flags* ask for. The manifest is read only if the flag with the same content is not given."""
    if "allow-metric-labels" in flags.given:
        entries: Mapping[str, str] = flags["allow-metric-labels"]
        _log_if_empty(entries)
    else:
        entries = _manifest(flags["allow-metric-labels-manifest"])
    return MetricsOptions(
        disabled=frozenset(_names(flags["disabled-metrics"])),
        allowed_values={_family_and_label(key): frozenset(values.split(",")) for key, values in entries.items()},
        watch_event_loop=watch_event_loop,
    )


def _names(disabled: tuple[str, ...]) -> list[str]:
    if "" in disabled:
        log.warning("Attempted to disable an empty metric name, ignoring.")
    return [name for name in disabled if name]


def _family_and_label(key: str) -> tuple[str, str]:
    family, _, label = key.partition(",")
    return family, label


def _manifest(path: str) -> Mapping[str, str]:
    # kube-scheduler complains in every start without a manifest that it is empty; nobody is helped by that line.
    if not path:
        return {}
    try:
        content = decode_text(read_bytes(path, max_bytes=MAX_MANIFEST_BYTES))
    except UNREADABLE as problem:
        log.error("Failed to read allow list manifest: %s", describe_open_error(path, problem))
        return {}
    except TrioSchedError as problem:
        log.error("Failed to parse allow list manifest: %s", problem)
        return {}
    try:
        document = next((one.value for one in read_plain(content)), None)
    except TrioSchedError as problem:
        log.error("Failed to parse allow list manifest: %s", problem)
        return {}
    entries = _entries(document)
    _log_if_empty(entries)
    return entries


def _entries(document: Any) -> Mapping[str, str]:
    if isinstance(document, dict) and isinstance(document.get(MANIFEST_KEY), dict):
        document = document[MANIFEST_KEY]
    if document is None:
        return {}
    if not isinstance(document, dict):
        log.error("Failed to parse allow list manifest: it must be a mapping of metric,label to values")
        return {}
    entries: dict[str, str] = {}
    for key, values in document.items():
        if isinstance(key, str) and isinstance(values, str) and METRIC_LABEL.fullmatch(key):
            entries[key] = values
        else:
            shown = quote(shortened(str(key)))
            log.error(
                "Failed to parse allow list manifest: the entry %s is left out: it must be metric,label: 'v1,v2'", shown
            )
    return entries


def _log_if_empty(entries: Mapping[str, str]) -> None:
    if not entries:
        log.error("empty allow-list mapping supplied, ignoring.")
