"""CEL for plugins that select devices; a module of its own because it takes a while to import.

::

    from trio_sched.plugin_api.cel import compile_device_selector
"""

from trio_sched.cel.device_selector import CompiledSelector as CompiledSelector
from trio_sched.cel.device_selector import compile_device_selector as compile_device_selector
from trio_sched.cel.device_selector import device_problem as device_problem
from trio_sched.cel.errors import CompileError as CompileError
from trio_sched.cel.errors import EvaluationError as EvaluationError
from trio_sched.cel.planning.references import Reference as Reference

__all__ = [
    "CompileError",
    "CompiledSelector",
    "EvaluationError",
    "Reference",
    "compile_device_selector",
    "device_problem",
]
