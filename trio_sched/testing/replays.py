"""Recordings of a scheduler as regression tests of plugins and configurations."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.recording.records import Configured
from trio_sched.replaying.replay import ReplayPlan, replay
from trio_sched.replaying.results import ReplayResult as ReplayResult
from trio_sched.testing.cluster_settings import cluster_settings


def replayed_cluster(
    folder: str | PathLike[str],
    *,
    config: str | None = None,
    plugins: Iterable[str | type[Any]] = (),
    is_same_configuration: bool | None = None,
) -> ReplayResult:
    """Make the decisions of a recording again, each in the state of the cluster of its moment.

    What follows from a decision is always what was recorded::

        def test_decisions_are_the_same(replayed_cluster):
            result = replayed_cluster("tests/recording", plugins=[MyPlugin])
            assert not result.differences

    Args:
        folder: what ``--record`` of the daemon or of ``trio-sched simulate``, or *record* of `virtual_cluster`, has
            written.
        config: the text of a configuration file; None: the recorded one.
        plugins: classes to use besides the installed plugins, or instead of those of the same name, or names of
            installed ones. Those that no profile mentions are enabled in all profiles.
        is_same_configuration: whether decisions that were left to chance count as different, too; by default only
            without *config* and *plugins*.

    Returns:
        How many decisions were compared, which are others and why, and their digest.

    Raises:
        TrioSchedError: there is no recording, or it cannot be scheduled with.
    """
    chosen = list(plugins)

    def settings_of(recorded: Configured) -> DaemonSettings:
        gates = FeatureGates.emulating(recorded.emulated_version, recorded.gates)
        return cluster_settings(recorded.configuration if config is None else config, gates, chosen, False)

    if is_same_configuration is None:
        is_same_configuration = config is None and not chosen
    return replay(ReplayPlan(folder=Path(folder), settings_of=settings_of, is_same_configuration=is_same_configuration))
