"""What would have become of a recorded cluster: simulated as it was recorded, and with another configuration."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from trio_sched.daemon.settings import DaemonSettings
from trio_sched.replaying.recorded_manifests import write_manifests
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.comparison import Comparison, compare_plans
from trio_sched.simulation.simulated_run import (
    Count,
    Plan,
    refuse_extenders,
    run_plan,
    say_on_stderr,
    scheduler_names,
)
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_MINOR


def compare_simulated(
    folder: Path,
    sides: tuple[DaemonSettings, DaemonSettings],
    *,
    begins: datetime,
    scratch: Path,
    begin: Callable[[str], None],
    count: Count,
) -> Comparison:
    """Simulate the cluster of the recording in *folder* twice, and compare.

    Args:
        folder: of the recording.
        sides: what to schedule with, the recorded configuration first.
        begins: the cluster's time at the beginning.
        scratch: a folder for files.
        begin: is told what is done next.
        count: is told how many pods have been decided on.

    Raises:
        TrioSchedError: it is no recording, or cannot be simulated; possibly in an exception group.
        OSError: the manifests cannot be written.
    """
    for settings in sides:
        refuse_extenders(settings)
    say, path = cache(say_on_stderr), scratch / "cluster.jsonl"
    minor = max(DEFAULT_MINOR, *(settings.gates.version[1] for settings in sides))
    cluster = ClusterFiles(files=(path,), kubernetes_version=f"1.{minor}")
    write_manifests(folder, path)
    first, second = (
        Plan(
            settings=settings,
            manifests=cluster.load(scheduler_names(settings), say, begin),  # a simulation changes them
            seed=0,
            kubernetes_version=cluster.kubernetes_version,
            begins=begins,
            say=say,
        )
        for settings in sides
    )
    begin("pods decided on")
    return compare_plans(first, second, partial(run_plan, progress=count))
