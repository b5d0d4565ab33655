"""A configuration in v1, or converted to it, and where it is from."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from attrs import frozen

from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.load import load_configuration
from trio_sched.config.schema import SchedulerConfig

if TYPE_CHECKING:
    from trio_sched.config.legacy import Conversion

log = logging.getLogger(__name__)

_POLICY_HINT: Final = (
    "this is a policy; give it with --policy-config-file instead of --config, or use what "
    "`trio-sched convert-config POLICY_FILE` prints"
)


@frozen(kw_only=True)
class ConfigurationText:
    """A configuration in v1, and its origin."""

    path: str = ""
    """The file; empty if there is none."""
    text: str | None
    """The v1 document; None if there is none and no flag of former versions."""
    conversion: Conversion | None = None
    """The conversion that made it; None if it was v1 already."""
    ignored: tuple[str, ...] = ()
    """Flags of former versions that were given and are ignored beside a configuration file."""

    def load(self, flags: FlagOverrides, gates: FeatureGates) -> SchedulerConfig:
        """The completed configuration.

        Raises:
            ConfigError: it is malformed or invalid.
        """
        try:
            return load_configuration(self.text, flags=flags, gates=gates)
        except ConfigError as error:
            if self.conversion is None:
                from trio_sched.config.legacy import is_policy

                if self.text is not None and is_policy(self.text):
                    error.hint = _POLICY_HINT
                elif self.path:
                    error.hint = f"`trio-sched check-config {self.path}` says which lines, and what may be meant"
                error.place = ", ".join(filter(None, (self.path, error.place)))
                raise
            raise error.within(f"{self.conversion.source}, converted to v1: ") from error

    def warn(self) -> None:
        """Log, once, what was converted and which flags are ignored; for a v1 document nothing is logged."""
        ignored = {"ignoredFlags": ", ".join(self.ignored)} if self.ignored else {}
        if self.conversion is not None:
            log.warning(
                "configuration of a former version is converted at every start; "
                "use its v1 text instead, which `trio-sched convert-config` prints",
                extra={
                    "source": self.conversion.source,
                    "changes": "\n".join(self.conversion.notes),
                    **ignored,
                    "v1": self.conversion.text_without_keys(),
                },
            )
        elif ignored:
            log.warning("flags of former versions mean nothing beside --config; leave them out", extra=ignored)
