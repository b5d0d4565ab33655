"""kube-scheduler's verbosity as levels of `logging`: ``-v=N`` shows what is logged at ``V0`` to ``VN``.

``log.log(V3, …)`` is skipped after one look-up in a cache unless ``-v=3`` or more is given, or ``--vmodule`` for its
file. Warnings and errors have no verbosity: they are always shown.
"""

import logging
from typing import Final

V0: Final = logging.INFO
"""The life of the process: start, lease, end."""
V1: Final = V0 - 1
"""The flags."""
V2: Final = V0 - 2
"""What became of pods; the configuration and the plugins in use."""
V3: Final = V0 - 3
"""Attempts, and changes of the cluster."""
V4: Final = V0 - 4
"""Internal decisions, retries."""
V5: Final = V0 - 5
"""The scheduling queue; renewals of the lease."""
V6: Final = V0 - 6
"""Requests: one line each."""
V7: Final = V0 - 7
"""The same with the headers of requests."""
V8: Final = V0 - 8
"""The same with the headers of responses, and with bodies."""
V9: Final = V0 - 9
"""The same as commands to repeat them."""
V10: Final = V0 - 10
"""The scores of nodes; the same level as `logging.DEBUG`."""

for _number in range(1, 10):
    logging.addLevelName(V0 - _number, f"V{_number}")


def level_of(verbosity: int) -> int:
    """The lowest level of `logging` that is shown with ``-v`` *verbosity*."""
    return max(V0 - verbosity, 1)


def verbosity_of(level: int) -> int:
    """With which ``-v`` a line of the `logging` *level* is shown; 0 for warnings and errors."""
    return max(V0 - level, 0)
