"""Plugins for trio-sched that have pods wait: TimeWindows for a time of day, CarbonAware for clean electricity."""

from trio_sched_time_windows.carbon_aware import CarbonAware as CarbonAware
from trio_sched_time_windows.carbon_aware import CarbonAwareArgs as CarbonAwareArgs
from trio_sched_time_windows.carbon_aware import Endpoint as Endpoint
from trio_sched_time_windows.time_windows import TimeWindows as TimeWindows
from trio_sched_time_windows.time_windows import TimeWindowsArgs as TimeWindowsArgs

__all__ = ["CarbonAware", "CarbonAwareArgs", "Endpoint", "TimeWindows", "TimeWindowsArgs"]
