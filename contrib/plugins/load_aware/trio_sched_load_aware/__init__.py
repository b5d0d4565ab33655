"""LoadAware: a plugin for trio-sched that places pods by the measured load of nodes."""

from trio_sched_load_aware.plugin import LoadAware as LoadAware
from trio_sched_load_aware.plugin import LoadAwareArgs as LoadAwareArgs
from trio_sched_load_aware.plugin import Signal as Signal

__all__ = ["LoadAware", "LoadAwareArgs", "Signal"]
