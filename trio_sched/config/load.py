"""From the text of a configuration file and the flags to a configuration that is complete and valid."""

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from trio_sched.config.defaults import complete
from trio_sched.config.errors import ConfigError, Finding, Problem
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.parse import parse_configuration, parse_with_findings
from trio_sched.config.plugin_arguments.table import argument_problems
from trio_sched.config.schema import ClientConnection, LeaderElection, SchedulerConfig
from trio_sched.config.validation import validate
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs


def load_configuration(
    text: str | None, *, flags: FlagOverrides | None = None, gates: FeatureGates = DEFAULT_GATES
) -> SchedulerConfig:
    """Complete and validate a configuration.

    Args:
        text: content of the configuration file; None if there is none.
        flags: those of the command line.
        gates: the feature gates in force.

    Raises:
        ConfigError: with every problem, in kube-scheduler's words. Flags without a file are not validated here: a
            wrong value is an error when it is used.
    """
    flags = flags or FlagOverrides()
    if text is None:
        return _apply_leader_election(_apply_deprecated(complete({}, gates), flags), flags)
    config = _apply_leader_election(complete(parse_configuration(text, gates), gates), flags)
    validate(config, gates)
    return config


def check_configuration(
    text: str, gates: FeatureGates = DEFAULT_GATES
) -> tuple[SchedulerConfig | None, tuple[Finding, ...]]:
    """Everything that is wrong with a configuration, and the completed configuration if nothing is.

    What is wrong as a whole (no YAML, another kind) hides all else. Problems of a field that is malformed, and of what
    is in it, are not repeated.
    """
    try:
        given, findings = parse_with_findings(text, gates)
    except ConfigError as error:
        return None, tuple(Finding(problem.path, problem.message) for problem in error.problems)
    config = complete(given, gates)
    problems = [*_deferred_problems(config, gates)]
    try:
        validate(config, gates)
    except ConfigError as error:
        problems += error.problems
    known = {finding.path for finding in findings if finding.path}
    findings += [
        Finding(problem.path, problem.message)
        for problem in dict.fromkeys(problems)
        if not any(f"{problem.path}.".startswith((f"{path}.", f"{path}[")) for path in known)
    ]
    return (None if findings else config), tuple(findings)


def _deferred_problems(config: SchedulerConfig, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with arguments that are validated only when their plugin is built."""
    for index, profile in enumerate(config.profiles):
        for entry_index, entry in enumerate(profile.plugin_config):
            if isinstance(entry.args, NodeResourcesFitArgs):
                yield from argument_problems(entry.args, f"profiles[{index}].pluginConfig[{entry_index}].args", gates)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _apply_leader_election(config: SchedulerConfig, flags: FlagOverrides) -> SchedulerConfig:
    election: LeaderElection = evolve(
        config.leader_election,
        **_given(
            leader_elect=flags.leader_elect,
            lease_duration_ns=flags.lease_duration_ns,
            renew_deadline_ns=flags.renew_deadline_ns,
            retry_period_ns=flags.retry_period_ns,
            resource_lock=flags.resource_lock,
            resource_name=flags.resource_name,
            resource_namespace=flags.resource_namespace,
        ),
    )
    return evolve(config, leader_election=election)


def _apply_deprecated(config: SchedulerConfig, flags: FlagOverrides) -> SchedulerConfig:
    connection: ClientConnection = evolve(
        config.client_connection,
        **_given(kubeconfig=flags.kubeconfig, content_type=flags.content_type, qps=flags.qps, burst=flags.burst),
    )
    profiling = _given(enable_profiling=flags.profiling, enable_contention_profiling=flags.contention_profiling)
    return evolve(config, client_connection=connection, **profiling)
