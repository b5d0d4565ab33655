"""What the daemon runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.limits import BLOCKING_SECONDS
from trio_sched.daemon.metrics.options import MetricsOptions
from trio_sched.daemon.plugins.plugin_trace import TraceSelector
from trio_sched.engine.hooks.failure_policy import FailurePolicy
from trio_sched.engine.queue.scheduling_queue import MAX_IN_UNSCHEDULABLE_SECONDS
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.recording.recording_settings import RecordingSettings

if TYPE_CHECKING:
    from trio_sched.daemon.serving_settings import ServingSettings
    from trio_sched.daemon.shadow.shadow_settings import ShadowSettings


@frozen(kw_only=True)
class DaemonSettings:
    """What to run: a configuration, its gates, the resolved profiles, and the identity of this process."""

    config: SchedulerConfig
    gates: FeatureGates
    profiles: tuple[ResolvedProfile, ...]
    registry: PluginRegistry
    identity: str
    """``<hostname>_<uuid>``: unique among all candidates for the lease."""
    max_in_unschedulable_seconds: float = MAX_IN_UNSCHEDULABLE_SECONDS
    serving: ServingSettings | None = None
    """None: nothing is served."""
    failure_policies: Mapping[str, FailurePolicy] = field(factory=dict)
    """By plugin; they win over what the classes say."""
    plugin_budget_seconds: float = BLOCKING_SECONDS
    """How long a hook may let nothing else run before it is named in the log."""
    trace_plugins: TraceSelector | None = None
    """The pods for which calls of plugins are logged."""
    metrics: MetricsOptions = field(factory=MetricsOptions)
    recording: RecordingSettings | None = None
    """Where decisions are recorded; None: nowhere."""
    shadow: ShadowSettings | None = None
    """Compare the decisions of another scheduler, and write nothing; None: schedule."""
