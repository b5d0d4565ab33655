"""CEL for plugins whose arguments hold expressions; a module of its own because it takes a while to import.

::

    from trio_sched.plugin_api.expressions import INT, STRING, compile_expression, map_of

    variables = {"labels": map_of(STRING, STRING), "cpus": INT}
    wanted = compile_expression('labels["tier"] == "gold" && cpus >= 4', variables)
    wanted.evaluate({"labels": {"tier": "gold"}, "cpus": 8})  # True
"""

from trio_sched.cel.errors import CompileError as CompileError
from trio_sched.cel.errors import EvaluationError as EvaluationError
from trio_sched.cel.expression import Expression as Expression
from trio_sched.cel.expression import compile_expression as compile_expression
from trio_sched.cel.values.types import BOOL as BOOL
from trio_sched.cel.values.types import BYTES as BYTES
from trio_sched.cel.values.types import DOUBLE as DOUBLE
from trio_sched.cel.values.types import DYN as DYN
from trio_sched.cel.values.types import INT as INT
from trio_sched.cel.values.types import STRING as STRING
from trio_sched.cel.values.types import Type as Type
from trio_sched.cel.values.types import list_of as list_of
from trio_sched.cel.values.types import map_of as map_of

__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DYN",
    "INT",
    "STRING",
    "CompileError",
    "EvaluationError",
    "Expression",
    "Type",
    "compile_expression",
    "list_of",
    "map_of",
]
