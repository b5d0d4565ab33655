"""The configuration that a command line names; most start without one."""

from trio_sched.cli.flags.flags import Flags
from trio_sched.cli.flags.legacy_flags import LEGACY_NAMES
from trio_sched.cli.startup.configuration_text import ConfigurationText


def choose_configuration(flags: Flags, *, connected: bool = True) -> ConfigurationText:
    """Read what *flags* name: a configuration file, else what the flags of former versions mean, else nothing.

    Args:
        flags: the command line.
        connected: whether there is an API server to read a policy in a ConfigMap from.

    Raises:
        ConfigError: something cannot be read, or not be converted.
        KubeClientError: the connection to fetch a policy with is unusable.
    """
    if not flags.config and not flags.given & LEGACY_NAMES:
        return ConfigurationText(text=None)
    from trio_sched.cli.startup.configuration_files import converted_start, read_configuration

    if flags.config:
        return read_configuration(flags, flags.config, connected=connected)
    return converted_start(flags, connected=connected)
