"""Parses and validates the command line of the daemon."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from trio_sched.cli.flags.flag_table import OWN_SECTIONS, SECTIONS, usage
from trio_sched.cli.flags.go_flags import FlagError, parse_go_flags
from trio_sched.cli.flags.legacy_flags import LEGACY_FLAGS
from trio_sched.cli.flags.version import KUBERNETES
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import (
    DEFAULT_GATES,
    FeatureGates,
    OutdatedGate,
    outdated_gates,
    resolve_feature_gates,
)
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.problems import forbidden, invalid
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.go.durations import format_duration
from trio_sched.go.text import json_text, quote, shortened

PROGRAM: Final = "kube-scheduler"
"""The name of the command in texts that programs read."""
_SHOWN_ARGUMENTS: Final = 1_000
"""Characters of what stands beside the flags that an error shows."""
_PREVIOUS_MINOR: Final = "1.35"
_METRIC: Final = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = "[a-zA-Z_][a-zA-Z0-9_]*"
METRIC_LABEL: Final = re.compile(f"{_METRIC},{_LABEL}")
"""The name of a metric and of one of its labels, as the flags about metrics have them."""
_FLAGS: Final = {flag.name: flag for flags in SECTIONS.values() for flag in flags}
_OWN_FLAGS: Final = {flag.name: flag for flags in OWN_SECTIONS.values() for flag in flags}


class ArgumentError(TrioSchedError):
    """The command line has arguments besides flags; it is printed without the usage."""

    def __init__(self, arguments: str) -> None:
        super().__init__(arguments)
        self._arguments = arguments

    def text(self, program: str) -> str:
        """What is wrong, in kube-scheduler's words, for the command *program*."""
        return f"{quote(program)} does not take any arguments, got [{self._arguments}]"

    def __str__(self) -> str:
        return self.text(PROGRAM)


class MissingFeatureError(TrioSchedError):
    """What is asked for is not done: there is no such feature yet, or not in simulated time."""


@frozen
class Flags:
    """The flags of one start: every value, and which of them were given."""

    values: Mapping[str, Any]
    given: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def config(self) -> str:
        """The path of the configuration file; empty if there is none."""
        path: str = self.values["config"]
        return path

    @property
    def master(self) -> str:
        """The address of the API server that takes precedence over the kubeconfig's; empty if none."""
        address: str = self.values["master"]
        return address

    @property
    def write_config_to(self) -> str:
        """Where to write the effective configuration instead of running; empty for running."""
        path: str = self.values["write-config-to"]
        return path

    @property
    def help(self) -> bool:
        """Whether to print the usage and exit; takes precedence over everything else."""
        return bool(self.values["help"])

    @property
    def version(self) -> str:
        """The value of ``--version``: empty, ``true``, ``raw``, or a version to report."""
        text: str = self.values["version"]
        return text

    @property
    def prints_version(self) -> bool:
        """Whether to print the version and exit, instead of reporting another one."""
        return self.version in ("true", "raw")

    @property
    def reported_version(self) -> str:
        """The version of Kubernetes to report: the one that ``--version`` gives, else the implemented one."""
        return self.version if self.version.startswith("v") else KUBERNETES

    def outdated_gates(self) -> list[OutdatedGate]:
        """The gates that are set although their features are GA or deprecated; the gates must be right."""
        return outdated_gates(self.values["feature-gates"], self.feature_gates().version)

    def feature_gates(self) -> FeatureGates:
        """The gates that the flags switch.

        Raises:
            ConfigError: a gate or a version is malformed, unknown, locked, or lacks another gate.
        """
        return resolve_feature_gates(
            self.values["feature-gates"],
            emulated=self.values["emulated-version"],
            min_compatibility=self.values["min-compatibility-version"],
        )

    def emulating(self, version: str) -> "Flags":
        """The same with another ``--emulated-version``."""
        return evolve(self, values={**self.values, "emulated-version": (version,)})

    def overrides(self) -> FlagOverrides:
        """What the flags change in the configuration: only those that were given."""
        say = {name: self.values[name] for name in self.given}.get
        return FlagOverrides(
            leader_elect=say("leader-elect"),
            lease_duration_ns=say("leader-elect-lease-duration"),
            renew_deadline_ns=say("leader-elect-renew-deadline"),
            retry_period_ns=say("leader-elect-retry-period"),
            resource_lock=say("leader-elect-resource-lock"),
            resource_name=say("leader-elect-resource-name"),
            resource_namespace=say("leader-elect-resource-namespace"),
            profiling=say("profiling"),
            contention_profiling=say("contention-profiling"),
            kubeconfig=say("kubeconfig"),
            content_type=say("kube-api-content-type"),
            qps=say("kube-api-qps"),
            burst=say("kube-api-burst"),
        )


def parse_flags(argv: Sequence[str]) -> Flags:
    """Parse *argv* (without the program's name).

    Raises:
        FlagError: a flag is wrong; to be printed after the usage.
        ArgumentError: something is no flag; to be printed alone.
    """
    flags, arguments = split_arguments(argv)
    if not flags.help and any(arguments):
        listed = shortened(" ".join(quote(shortened(argument)) for argument in arguments), _SHOWN_ARGUMENTS)
        raise ArgumentError(listed)
    return flags


def split_arguments(argv: Sequence[str]) -> tuple[Flags, tuple[str, ...]]:
    """The flags in *argv*, and what is no flag.

    Raises:
        FlagError: a flag is wrong.
    """
    parsed = parse_go_flags([*_FLAGS.values(), *_OWN_FLAGS.values(), *LEGACY_FLAGS], argv)
    return Flags(parsed.values, parsed.given), parsed.arguments


def near_flag(name: str) -> str | None:
    """The flag that *name* may have been meant to be; None if none is near."""
    return nearest_name(name, {**_FLAGS, **_OWN_FLAGS})


def flags_usage(program: str = PROGRAM, columns: int | None = None) -> str:
    """The flags of kube-scheduler, for ``--help`` and before a wrong flag's error, in lines of *columns* if given."""
    return usage(program, DEFAULT_GATES.help_lines(), columns)


def flag_values(flags: Flags) -> dict[str, str]:
    """Every flag of kube-scheduler with its value as Go prints it, and ours that were given, in alphabetical order."""
    shown = _FLAGS | {name: flag for name, flag in _OWN_FLAGS.items() if name in flags.given}
    return {name: flag.type.show(flags[name]) for name, flag in sorted(shown.items())}


def logging_problems(flags: Flags, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with the flags about logging."""
    if flags["log-flush-frequency"] <= 0:
        yield invalid("flushFrequency", format_duration(flags["log-flush-frequency"]), "Must be greater than zero")
    log_format = flags["logging-format"]
    if log_format not in ("text", "json"):
        yield invalid("format", log_format, "Unsupported log format")
    elif log_format == "json" and not gates.features.logging_beta_options:
        yield forbidden("format", "Log format json is disabled, see LoggingBetaOptions feature")
    if log_format not in ("", "text") and flags["vmodule"]:
        yield forbidden("vmodule", "Only supported for text log format")
    if not gates.features.logging_alpha_options:
        for kind in ("text", "json"):
            disabled = "Feature LoggingAlphaOptions is disabled"
            if flags[f"log-{kind}-split-stream"]:
                yield forbidden(f"options.{kind}.splitStream", disabled)
            if flags[f"log-{kind}-info-buffer-size"]:
                yield forbidden(f"options.{kind}.infoBufferSize", disabled)


def option_problems(flags: Flags, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with the flags about serving and metrics, as far as they alone show."""
    port = flags["secure-port"]
    if port < 0:
        range_ = "must be between 0 and 65535, inclusive. 0 for turning off secure port"
        yield Problem("", f"--secure-port {port} {range_}")
    elif port > 65535:
        range_ = "must be between 1 and 65535, inclusive. It cannot be turned off with 0"
        yield Problem("", f"--secure-port {port} {range_}")
    yield from _request_header_problems(flags, gates)
    yield from _metric_problems(flags)


def _request_header_problems(flags: Flags, gates: FeatureGates) -> Iterator[Problem]:
    uid_headers, with_uid = flags["requestheader-uid-headers"], gates.features.remote_request_header_uid
    names = ["username-headers", "group-headers", "extra-headers-prefix", "allowed-names"]
    for name in [*names, "uid-headers"] if with_uid else names:
        if not all(map(str.strip, flags[f"requestheader-{name}"])):
            yield Problem("", f"empty value in {quote(f'requestheader-{name}')}")
    if uid_headers and not with_uid:
        yield Problem("", '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled')
    elif uid_headers and "x-remote-uid" not in map(str.lower, uid_headers):
        without = "is set without specifying the standard X-Remote-Uid header - API aggregation will not work"
        yield Problem("", f"--requestheader-uid-headers {without}")


def _metric_problems(flags: Flags) -> Iterator[Problem]:
    hidden = flags["show-hidden-metrics-for-version"]
    if hidden not in ("", _PREVIOUS_MINOR):
        detail = f"must be omitted or have the value '{_PREVIOUS_MINOR}'; only the previous minor version is allowed"
        yield invalid("metrics.showHiddenMetricsForVersion", hidden, detail)
    for name in flags["disabled-metrics"]:
        if not re.fullmatch(_METRIC, name):
            detail = f"must be fully qualified metric names matching {quote(f'^{_METRIC}$')}, got {quote(name)}"
            yield invalid("metrics.disabledMetrics", list(flags["disabled-metrics"]), detail)
            break
    path = "metrics.allowListMapping"
    yield from _label_problems(path, flags["allow-metric-labels"])
    if file := flags["allow-metric-labels-manifest"]:
        yield from _manifest_problems(f"{path}Manifest", file)
        if "allow-metric-labels" in flags.given:
            given = {
                "showHiddenMetricsForVersion": hidden,
                "disabledMetrics": list(flags["disabled-metrics"]),
                "allowListMapping": flags["allow-metric-labels"],
                "allowListMappingManifest": file,
            }
            detail = "cannot specify both allowListMapping and allowListMappingManifest"
            yield invalid("metrics", {name: value for name, value in given.items() if value}, detail)


def _label_problems(path: str, labels: Mapping[str, str]) -> Iterator[Problem]:
    if any(not METRIC_LABEL.fullmatch(key) for key in labels):
        detail = (
            "must have keys with format `metricName,labelName` where metricName matches "
            f"{json_text(_METRIC)} and labelName matches {json_text(_LABEL)}"
        )
        yield invalid(path, labels, detail)


def _manifest_problems(path: str, file: str) -> Iterator[Problem]:
    from trio_sched.cli.flags.metric_labels import ManifestError, read_label_manifest

    try:
        labels = read_label_manifest(file)
    except ManifestError as error:
        yield invalid(path, file, str(error))
        return
    problems = [str(problem) for problem in _label_problems(path, labels)]
    if problems:
        yield invalid(path, file, f"invalid allow list mapping in manifest: {problems[0]}")


__all__ = [
    "PROGRAM",
    "ArgumentError",
    "FlagError",
    "Flags",
    "MissingFeatureError",
    "flag_values",
    "flags_usage",
    "logging_problems",
    "near_flag",
    "option_problems",
    "parse_flags",
    "split_arguments",
]
