"""Durations in configuration files; what is wrong with one is an error of the configuration."""

from trio_sched.config.errors import ConfigError
from trio_sched.go import durations
from trio_sched.go.durations import InvalidDuration


def parse_duration(text: str) -> int:
    """Return *text* in nanoseconds.

    Raises:
        ConfigError: the text is no duration, or more than about 292 years.
    """
    try:
        return durations.parse_duration(text)
    except InvalidDuration as error:
        raise ConfigError.of(str(error)) from None
