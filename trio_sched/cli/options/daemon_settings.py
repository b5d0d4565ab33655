"""The settings of the daemon, of flags and configuration that have been read."""

import logging
import socket
import uuid
from typing import Final

from trio_sched.cli.flags.failure_policies import read_failure_policies
from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.flags.metrics_options import metrics_options
from trio_sched.cli.flags.recording_options import read_recording
from trio_sched.cli.flags.shadow_options import shadow_settings, without_election
from trio_sched.cli.plugin_loading.chosen_plugins import check_arguments
from trio_sched.cli.startup.prepare import Prepared
from trio_sched.config.errors import ConfigError
from trio_sched.daemon.plugins.plugin_trace import BadTraceSelector, TraceSelector
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.go.durations import format_duration
from trio_sched.go.text import shortened
from trio_sched.objects.timestamps import SECOND_NS

log = logging.getLogger(__name__)

_LEAST_BUDGET_NS: Final = SECOND_NS // 1000


def daemon_settings(prepared: Prepared, registry: PluginRegistry, *, watch_event_loop: bool = False) -> DaemonSettings:
    """The settings of the daemon; warns once about default plugins that this version does not have.

    Args:
        prepared: the start.
        registry: where the plugins come from.
        watch_event_loop: measure how late the event loop comes round; only of use where metrics are served.

    Raises:
        PluginError: a plugin is not installed at all, or its arguments do not fit.
        PlacedPluginError: the same, of a plugin that the configuration names.
        ConfigError: a flag that is no flag of kube-scheduler is wrong.
    """
    shadow = shadow_settings(prepared.flags, prepared.config)
    with prepared.places.named_in_errors():
        check_arguments(prepared.profiles, registry)
    for problem in prepared.places.unknown_arguments(registry):
        log.warning("%s", problem)
    return DaemonSettings(
        config=prepared.config if shadow is None else without_election(prepared.config),
        gates=prepared.gates,
        profiles=prepared.profiles,
        registry=registry,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        plugin_budget_seconds=_budget_seconds(prepared.flags),
        trace_plugins=_trace_selector(prepared.flags["trace-plugins"]),
        failure_policies=read_failure_policies(prepared.flags["plugin-failure-policy"], prepared.profiles, registry),
        metrics=metrics_options(prepared.flags, watch_event_loop=watch_event_loop),
        max_in_unschedulable_seconds=prepared.flags["pod-max-in-unschedulable-pods-duration"] / SECOND_NS,
        serving=prepared.serving,
        recording=read_recording(prepared.flags),
        shadow=shadow,
    )


def _budget_seconds(flags: Flags) -> float:
    """How long a hook may block.

    Raises:
        ConfigError: the flag says no time at all.
    """
    budget: int = flags["plugin-blocking-budget"]
    if budget < _LEAST_BUDGET_NS:
        raise ConfigError.of(f"--plugin-blocking-budget={format_duration(budget)}: must be at least 1ms")
    return budget / SECOND_NS


def _trace_selector(text: str) -> TraceSelector | None:
    """The pods for which calls of plugins are logged.

    Raises:
        ConfigError: the flag names none.
    """
    try:
        return TraceSelector.read(text) if text else None
    except BadTraceSelector as error:
        raise ConfigError.of(f"--trace-plugins={shortened(text)}: {error}") from error
