import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_logging() -> Iterator[None]:
    """Restore handlers and levels of the process's logging at the end, for code that sets it up."""
    root = logging.getLogger()
    handlers, level, raised = list(root.handlers), root.level, logging.raiseExceptions
    levels = {name: logging.getLogger(name).level for name in ("trio_sched", "plugins_builtin")}
    yield
    logging.captureWarnings(False)
    logging.raiseExceptions = raised
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, former in levels.items():
        logging.getLogger(name).setLevel(former)
