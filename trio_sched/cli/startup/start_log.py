"""What the log says about a start: the flags, the configuration and the plugins in use, the versions."""

import logging
import platform
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio_sched
from trio_sched.cli.flags.flags import Flags, flag_values
from trio_sched.cli.startup.prepare import Prepared
from trio_sched.config.expansion import PointsOf, overridden_at_points, overridden_defaults
from trio_sched.config.parse import parse_configuration
from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.wire_types import ALL_POINTS
from trio_sched.daemon.logs.log_setup import LogSettings
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.verbosity import V1, V2

log = logging.getLogger(__name__)

_MASK: Final = "<masked>"
_SECRET_LINE: Final = re.compile(r"^(\s*(?:- )?\S*(?:password|token|secret|keyData)\S*:) .+$", re.I | re.M)
_USER: Final = re.compile(r"(?<=://)[^/@\s]*(?=@)")
_WEIGHED: Final = ("score", "placement_score")
_MAX_BUFFER_BYTES: Final = 1 << 31


def log_settings(flags: Flags) -> LogSettings:
    """How *flags*, which have been checked, want logs to be written."""
    log_format = flags["logging-format"]
    return LogSettings(
        format=log_format,
        verbosity=flags["v"],
        vmodule=flags["vmodule"],
        split_stream=flags[f"log-{log_format}-split-stream"],
        info_buffer_bytes=max(0, min(flags[f"log-{log_format}-info-buffer-size"], _MAX_BUFFER_BYTES)),
        flush_seconds=flags["log-flush-frequency"] / SECOND_NS,
    )


def log_flags(flags: Flags) -> None:
    """Log every flag with its value, from ``-v=1`` on."""
    if log.isEnabledFor(V1):
        for name, value in flag_values(flags).items():
            log.log(V1, 'FLAG: --%s="%s"', name, without_secrets(value))


def log_overrides(prepared: Prepared, points_of: PointsOf) -> None:
    """Log which default settings of plugins the configuration file replaces."""
    text = prepared.source.text
    for given in () if text is None else parse_configuration(text, prepared.gates).get("profiles") or ():
        for name in overridden_defaults(given, prepared.gates):
            log.info("Default plugin is explicitly re-configured; overriding", extra={"plugin": name})
    for profile in prepared.config.profiles:
        for name in overridden_at_points(profile, points_of):
            log.info("MultiPoint plugin is explicitly re-configured; overriding", extra={"plugin": name})


def log_plugins(profiles: Iterable[ResolvedProfile]) -> None:
    """Log which plugins run at which point, from ``-v=2`` on."""
    for profile in profiles if log.isEnabledFor(V2) else ():
        plugins: dict[str, list[Any]] = {
            written: [{"name": ref.name, "weight": ref.weight} if point in _WEIGHED else ref.name for ref in refs]
            for written, point in ALL_POINTS.items()
            if (refs := profile.points.get(point))
        }
        fields = {"profile": profile.name, "Plugins": plugins}
        log.log(V2, "the scheduler starts to work with those plugins", extra=fields)


def log_configuration(effective_yaml: Callable[[], str]) -> None:
    """Log the configuration in use, without the keys in it, from ``-v=2`` on."""
    if log.isEnabledFor(V2):
        log.log(V2, "Using component config", extra={"config": without_secrets(effective_yaml())})


def log_versions(reported: str) -> None:
    """Log what starts."""
    log.info("Starting Kubernetes Scheduler", extra={"version": reported, "trioSched": trio_sched.__version__})
    implementation = platform.python_implementation()
    log.info("Python settings", extra={"version": platform.python_version(), "implementation": implementation})


def without_secrets(text: str) -> str:
    """*text*, YAML or a flag's value, with keys, passwords and tokens masked."""
    return _USER.sub(_MASK, _SECRET_LINE.sub(rf"\1 {_MASK}", text))
