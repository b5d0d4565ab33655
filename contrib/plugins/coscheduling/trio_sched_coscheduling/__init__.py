"""Coscheduling: a plugin for trio-sched that binds the pods of a gang together or not at all."""

from trio_sched_coscheduling.plugin import Coscheduling as Coscheduling

__all__ = ["Coscheduling"]
