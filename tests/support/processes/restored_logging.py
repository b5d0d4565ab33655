import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restored_logging() -> Iterator[None]:
    """Restore handlers and levels of the process's logging at the end, for code that sets it up."""
    root = logging.getLogger()
    handlers, level, raised = list(root.handlers), root.level, logging.raiseExceptions
    levels = {logger: logger.level for logger in _loggers()}
    yield
    logging.captureWarnings(False)
    logging.raiseExceptions = raised
    root.handlers[:] = handlers
    root.setLevel(level)
    for logger in _loggers():
        logger.setLevel(levels.get(logger, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    return [logger for logger in logging.Logger.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
