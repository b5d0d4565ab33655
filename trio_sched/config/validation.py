"""Validates a completed configuration: every error at once, in kube-scheduler's order and words; no warnings."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from trio_sched.config.errors import ConfigError, Problem
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.config.known_plugins import REMOVED_PLUGINS
from trio_sched.config.plugin_arguments.table import argument_problems, internal_arguments
from trio_sched.config.problems import duplicate, invalid, invalid_name, required
from trio_sched.config.schema import (
    ClientConnection,
    Extender,
    LeaderElection,
    PluginConfig,
    PluginRef,
    Profile,
    RawArguments,
    SchedulerConfig,
    Sharding,
)
from trio_sched.config.wire_types import API_VERSION, POINTS
from trio_sched.documents.tree import compact
from trio_sched.go.durations import format_duration
from trio_sched.objects.names import is_extended_resource, label_key_problems
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs

MAX_SHARDS: Final = 256
"""The most that ``sharding.shards`` may say."""
_REMOVED: Final = (
    f'was invalid in version "{API_VERSION.rpartition("/")[2]}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
_UNCHECKED_POINTS: Final = frozenset({"multiPoint", "placementGenerate", "placementScore"})


def validate(config: SchedulerConfig, gates: FeatureGates = DEFAULT_GATES) -> None:
    """Validate *config*.

    Raises:
        ConfigError: with every problem.
    """
    problems = list(_problems(config, gates))
    if problems:
        raise ConfigError(problems)


def _problems(config: SchedulerConfig, gates: FeatureGates) -> Iterator[Problem]:
    yield from _client_connection(config.client_connection)
    yield from _leader_election(config.leader_election)
    if config.parallelism <= 0:
        yield invalid("parallelism", config.parallelism, "should be an integer value greater than zero")
    yield from _profiles(config.profiles, gates)
    yield from _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score)
    if config.pod_initial_backoff_seconds <= 0:
        yield invalid("podInitialBackoffSeconds", config.pod_initial_backoff_seconds, "must be greater than 0")
    if config.pod_max_backoff_seconds < config.pod_initial_backoff_seconds:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", config.pod_max_backoff_seconds, detail)
    yield from _extenders(config.extenders)
    if config.sharding is not None:
        yield from _sharding(config, config.sharding)


def _sharding(config: SchedulerConfig, sharding: Sharding) -> Iterator[Problem]:
    if not 1 <= sharding.shards <= MAX_SHARDS:
        yield invalid("sharding.shards", sharding.shards, f"must be between 1 and {MAX_SHARDS}")
    for problem in label_key_problems(sharding.node_label) if sharding.node_label else ():
        yield invalid("sharding.nodeLabel", sharding.node_label, problem)
    if not config.leader_election.leader_elect:
        detail = "must be true with sharding: its times, its name and its namespace are those of the leases of shards"
        yield invalid("leaderElection.leaderElect", False, detail)
    for i, extender in enumerate(config.extenders):
        if extender.bind_verb:
            detail = "must be empty with sharding, as an extender would bind pods without naming their version"
            yield invalid(f"extenders[{i}].bindVerb", extender.bind_verb, detail)
    if config.delay_cache_until_active:
        yield invalid("delayCacheUntilActive", True, "must be false with sharding, as every replica is active")


def _client_connection(connection: ClientConnection) -> Iterator[Problem]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[Problem]:
    if not election.leader_elect:
        return
    for name, value in (
        ("leaseDuration", election.lease_duration_ns),
        ("renewDeadline", election.renew_deadline_ns),
        ("retryPeriod", election.retry_period_ns),
    ):
        if value <= 0:
            yield invalid(f"leaderElection.{name}", format_duration(value), "must be greater than zero")
    if election.lease_duration_ns <= election.renew_deadline_ns:
        # The value shown is the other one, as in kube-scheduler.
        shown = format_duration(election.renew_deadline_ns)
        yield invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`")
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            yield required(f"leaderElection.{name}")
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _percentage(path: str, percentage: int | None) -> Iterator[Problem]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: Sequence[Profile], gates: FeatureGates) -> Iterator[Problem]:
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        if not profile.scheduler_name:
            yield required(f"{path}.schedulerName")
        yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        yield from _removed_plugins(profile, f"{path}.plugins")
        yield from _plugin_configs(profile, path, gates)
        if profile.scheduler_name in names:
            # Not the name: Go prints a path there, which has nothing to show.
            yield Problem(f"{path}.schedulerName", "Duplicate value: {}")
        names.add(profile.scheduler_name)
    yield from _queue_sorts(profiles)


def _removed_plugins(profile: Profile, path: str) -> Iterator[Problem]:
    for key, point in POINTS.items():
        if key not in _UNCHECKED_POINTS:
            for index, ref in enumerate(profile.plugins[point].enabled):
                if ref.name in REMOVED_PLUGINS:
                    yield invalid(f"{path}.{key}.enabled[{index}]", ref.name, _REMOVED)


def _plugin_configs(profile: Profile, path: str, gates: FeatureGates) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(profile.plugin_config):
        place = f"{path}.pluginConfig[{index}]"
        if entry.name in seen:
            yield duplicate(place, entry.name)
        seen.add(entry.name)
        if entry.name in REMOVED_PLUGINS:
            yield invalid(place, entry.name, _REMOVED)
        elif not isinstance(entry.args, RawArguments | NodeResourcesFitArgs | None):
            # NodeResourcesFit is validated only when a profile that enables it is built (see `expansion`).
            yield from argument_problems(entry.args, f"{place}.args", gates)


def _queue_sorts(profiles: Sequence[Profile]) -> Iterator[Problem]:
    """Every profile must sort the one queue in the same way."""
    first = profiles[0].plugins["queue_sort"]
    if len(first.enabled) > 1:
        detail = "only one queue sort plugin can be enabled"
        yield invalid("profiles[0].plugins.queueSort.Enabled", len(first.enabled), detail)
    name = first.enabled[0].name if first.enabled else ""
    args = _last_config(profiles[0], name)
    for index, profile in enumerate(profiles[1:], start=1):
        current = profile.plugins["queue_sort"]
        if current != first:
            shown = {"Enabled": _shown_refs(current.enabled), "Disabled": _shown_refs(current.disabled)}
            yield invalid(f"profiles[{index}].plugins.queueSort", shown, "must be the same for all profiles")
        for entry in profile.plugin_config:
            if entry.name == name and entry.args != (args.args if args else None):
                message = f"Invalid value: {_shown_args(entry)}: queueSort must be the same for all profiles"
                yield Problem(f"profiles[{index}].pluginConfig.args", message)


def _last_config(profile: Profile, name: str) -> PluginConfig | None:
    return next((entry for entry in reversed(profile.plugin_config) if name and entry.name == name), None)


def _shown_refs(refs: tuple[PluginRef, ...]) -> list[dict[str, Any]] | None:
    return [{"Name": ref.name, "Weight": ref.weight} for ref in refs] or None


def _shown_args(entry: PluginConfig) -> str:
    if entry.args is None:
        return "null"
    return compact(entry.args.tree) if isinstance(entry.args, RawArguments) else internal_arguments(entry.args)


def _extenders(extenders: Sequence[Extender]) -> Iterator[Problem]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"extenders[{i}].weight", extender.weight, "must have a positive weight applied to it")
        for j, resource in enumerate(extender.managed_resources):
            path = f"extenders[{i}].managedResources[{j}].name"
            problems = label_key_problems(resource.name)
            for problem in problems:
                yield invalid_name(path, resource.name, problem)
            if not problems and not is_extended_resource(resource.name):
                yield invalid(path, resource.name, "is an invalid extended resource name")
            if resource.name in managed:
                yield invalid(path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")
