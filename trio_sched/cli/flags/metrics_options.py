"""What the flags about metrics ask for."""

import logging
from collections.abc import Mapping

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.flags.metric_labels import read_label_manifest
from trio_sched.daemon.metrics.options import MetricsOptions

log = logging.getLogger(__name__)


def metrics_options(flags: Flags, *, watch_event_loop: bool) -> MetricsOptions:
    """The options that *flags* ask for, which have been checked.

    Raises:
        ManifestError: the manifest has changed since, and cannot be used.
    """
    entries: Mapping[str, str] = flags["allow-metric-labels"]
    # kube-scheduler complains in every start without a manifest that it is empty; nobody is helped by that line.
    if "allow-metric-labels" in flags.given:
        _log_if_empty(entries)
    elif manifest := flags["allow-metric-labels-manifest"]:
        entries = read_label_manifest(manifest)
        _log_if_empty(entries)
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


def _log_if_empty(entries: Mapping[str, str]) -> None:
    if not entries:
        log.error("empty allow-list mapping supplied, ignoring.")
