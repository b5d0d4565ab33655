"""Completes a decoded configuration: what was not given gets kube-scheduler's default."""

from attrs import frozen

from trio_sched.config.decode import Given
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import default_plugins
from trio_sched.config.plugin_arguments.table import PLUGIN_ARGUMENTS, complete_arguments
from trio_sched.config.plugin_sets import merge_plugin_set
from trio_sched.config.schema import (
    MULTI_POINT,
    ClientConnection,
    Extender,
    ExtenderTls,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    PluginRef,
    PluginSet,
    Profile,
    RawArguments,
    SchedulerConfig,
    Sharding,
)
from trio_sched.config.wire_types import points_at


@frozen
class DecodedArguments:
    """The ``args`` of an in-tree plugin, decoded but not completed."""

    fields: Given


def complete(given: Given, gates: FeatureGates) -> SchedulerConfig:
    """The completed configuration for what is *given*; ``args`` of in-tree plugins are `DecodedArguments`."""
    standard = SchedulerConfig()
    profiles: tuple[Given, ...] = given.get("profiles") or ({},)
    enable_profiling = given.get("enableProfiling", standard.enable_profiling)
    return SchedulerConfig(
        parallelism=given.get("parallelism", standard.parallelism),
        leader_election=_leader_election(given.get("leaderElection", {})),
        client_connection=_client_connection(given.get("clientConnection", {})),
        enable_profiling=enable_profiling,
        enable_contention_profiling=given.get("enableContentionProfiling", enable_profiling),
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore", standard.percentage_of_nodes_to_score),
        pod_initial_backoff_seconds=given.get("podInitialBackoffSeconds", standard.pod_initial_backoff_seconds),
        pod_max_backoff_seconds=given.get("podMaxBackoffSeconds", standard.pod_max_backoff_seconds),
        profiles=tuple(_profile(profile, gates, alone=len(profiles) == 1) for profile in profiles),
        extenders=tuple(map(_extender, given.get("extenders") or ())),
        delay_cache_until_active=given.get("delayCacheUntilActive", standard.delay_cache_until_active),
        explain_in_condition=given.get("explainInCondition", standard.explain_in_condition),
        sharding=_sharding(given.get("sharding")),
    )


def _sharding(given: Given | None) -> Sharding | None:
    return None if given is None else Sharding(shards=given.get("shards", 0), node_label=given.get("nodeLabel", ""))


def _leader_election(given: Given) -> LeaderElection:
    standard = LeaderElection()
    return LeaderElection(
        leader_elect=given.get("leaderElect", True),
        lease_duration_ns=given.get("leaseDuration") or standard.lease_duration_ns,
        renew_deadline_ns=given.get("renewDeadline") or standard.renew_deadline_ns,
        retry_period_ns=given.get("retryPeriod") or standard.retry_period_ns,
        resource_lock=given.get("resourceLock") or standard.resource_lock,
        resource_name=given.get("resourceName") or standard.resource_name,
        resource_namespace=given.get("resourceNamespace") or standard.resource_namespace,
    )


def _client_connection(given: Given) -> ClientConnection:
    standard = ClientConnection()
    return ClientConnection(
        kubeconfig=given.get("kubeconfig", ""),
        accept_content_types=given.get("acceptContentTypes", ""),
        content_type=given.get("contentType") or standard.content_type,
        qps=given.get("qps") or standard.qps,
        burst=given.get("burst") or standard.burst,
    )


def _profile(given: Given, gates: FeatureGates, *, alone: bool) -> Profile:
    plugins = _plugins(given.get("plugins", {}), gates)
    entries = [_plugin_config(entry, gates) for entry in given.get("pluginConfig") or ()]
    configured = {entry.name for entry in entries}
    enabled = {ref.name for plugin_set in plugins.values() for ref in plugin_set.enabled}
    entries += [
        PluginConfig(name=name, args=complete_arguments(name, {}, gates))
        for name in sorted(enabled & PLUGIN_ARGUMENTS.keys())
        if name not in configured
    ]
    return Profile(
        # Only if there is one profile does its name have a default.
        scheduler_name=given.get("schedulerName", "default-scheduler" if alone else ""),
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore"),
        plugins=plugins,
        plugin_config=tuple(entries),
    )


def _plugins(given: Given, gates: FeatureGates) -> dict[str, PluginSet]:
    plugins = {}
    for key, point in points_at(gates).items():
        default = PluginSet(enabled=default_plugins(gates)) if point == MULTI_POINT else PluginSet()
        plugins[point] = merge_plugin_set(default, _plugin_set(given.get(key, {})))
    return plugins


def _plugin_set(given: Given) -> PluginSet:
    return PluginSet(enabled=_plugin_refs(given.get("enabled")), disabled=_plugin_refs(given.get("disabled")))


def _plugin_refs(given: tuple[Given, ...] | None) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(ref.get("name", ""), ref.get("weight", 0)) for ref in given or ())


def _plugin_config(given: Given, gates: FeatureGates) -> PluginConfig:
    name, args = given.get("name", ""), given.get("args")
    if isinstance(args, DecodedArguments):
        return PluginConfig(name=name, args=complete_arguments(name, args.fields, gates))
    return PluginConfig(name=name, args=None if args is None else RawArguments(args))


def _extender(given: Given) -> Extender:
    tls = given.get("tlsConfig")
    return Extender(
        url_prefix=given.get("urlPrefix", ""),
        filter_verb=given.get("filterVerb", ""),
        preempt_verb=given.get("preemptVerb", ""),
        prioritize_verb=given.get("prioritizeVerb", ""),
        weight=given.get("weight", 0),
        bind_verb=given.get("bindVerb", ""),
        enable_https=given.get("enableHTTPS", False),
        tls_config=None if tls is None else _extender_tls(tls),
        http_timeout_ns=given.get("httpTimeout", 0),
        node_cache_capable=given.get("nodeCacheCapable", False),
        managed_resources=tuple(map(_managed_resource, given.get("managedResources") or ())),
        ignorable=given.get("ignorable", False),
    )


def _extender_tls(given: Given) -> ExtenderTls:
    return ExtenderTls(
        insecure=given.get("insecure", False),
        server_name=given.get("serverName", ""),
        cert_file=given.get("certFile", ""),
        key_file=given.get("keyFile", ""),
        ca_file=given.get("caFile", ""),
        cert_data=given.get("certData", b""),
        key_data=given.get("keyData", b""),
        ca_data=given.get("caData", b""),
    )


def _managed_resource(given: Given) -> ManagedResource:
    return ManagedResource(name=given.get("name", ""), ignored_by_scheduler=given.get("ignoredByScheduler", False))
