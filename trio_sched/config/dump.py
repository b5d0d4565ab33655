"""Writes a completed configuration as YAML: keys sorted, every default written, as ``--write-config-to`` does.

Source: the YAML form that kube-scheduler writes; which scalars it quotes, and how, is part of it.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from trio_sched.config.omit_empty import omit_empty
from trio_sched.config.plugin_arguments.table import dump_arguments
from trio_sched.config.schema import (
    Extender,
    ExtenderTls,
    PluginConfig,
    PluginRef,
    PluginSet,
    Profile,
    RawArguments,
    SchedulerConfig,
    Sharding,
)
from trio_sched.config.wire_types import ALL_POINTS, API_VERSION, CONFIGURATION_KIND
from trio_sched.documents.tree import Array, Number, Object, Tree
from trio_sched.documents.yaml_scalars import reads_as_text, resolve_scalar
from trio_sched.go.durations import format_duration
from trio_sched.go.text import general_float, json_float

_NO_LIMIT: Final = 1 << 30
_DOCUMENT_END: Final = "\n...\n"


def dump_configuration(config: SchedulerConfig) -> str:
    """*config* as YAML text."""
    return write_yaml(configuration_tree(config))


def write_yaml(value: Any, *, in_order: bool = False) -> str:
    """*value* (mappings, lists, scalars and `Number`) as YAML, mappings in natural order of their keys.

    Args:
        value: what to write.
        in_order: leave mappings in the order that they have.
    """
    text: str = yaml.emit(_document(value, in_order), Dumper=yaml.CSafeDumper, width=_NO_LIMIT, allow_unicode=True)
    # libyaml marks the end after a text that ends in newlines to be kept; kube-scheduler's library does not.
    return text[: -len(_DOCUMENT_END)] + "\n" if text.endswith(_DOCUMENT_END) else text


def _document(value: Any, in_order: bool) -> Iterator[yaml.Event]:
    """The events of a document that holds *value*.

    Events, not PyYAML's representers: those quote and tag what PyYAML would read differently, and kube-scheduler's
    library reads, and therefore quotes, by rules of its own.
    """
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _events(value, in_order)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _events(value: Any, in_order: bool) -> Iterator[yaml.Event]:
    if isinstance(value, dict):
        yield yaml.MappingStartEvent(None, None, True, flow_style=False)
        for key in value if in_order else sorted(value, key=_natural):
            yield _scalar(key)
            yield from _events(value[key], in_order)
        yield yaml.MappingEndEvent()
    elif isinstance(value, list | tuple):
        yield yaml.SequenceStartEvent(None, None, True, flow_style=False)
        for item in value:
            yield from _events(item, in_order)
        yield yaml.SequenceEndEvent()
    else:
        yield _scalar(value)


def _scalar(value: str | int | bool | Number | None) -> yaml.ScalarEvent:
    style = None
    match value:
        case None:
            text = "null"
        case str():
            text = value
            style = "|" if "\n" in value else None if reads_as_text(value) else '"'
        case bool():
            text = "true" if value else "false"
        case int():
            text = str(value)
        case Number():
            number = resolve_scalar(value.text, "")
            text = general_float(number) if isinstance(number, float) else str(number)
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)


def _natural(key: str) -> list[tuple[int, int, str]]:
    """The key of natural sort order: other characters before letters, runs of digits by their number."""
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for character in key:
        if character.isdecimal():
            digits += character
            continue
        if digits:
            parts.append((1, int(digits), digits))
            digits = ""
        parts.append((2 if character.isalpha() else 1, -1 if not character.isalpha() else 0, character))
    return [*parts, (1, int(digits), digits)] if digits else parts


def configuration_tree(config: SchedulerConfig) -> dict[str, Any]:
    """*config* as mappings, lists, scalars and `Number`, with every default."""
    connection, election = config.client_connection, config.leader_election
    return {
        "apiVersion": API_VERSION,
        "kind": CONFIGURATION_KIND,
        "clientConnection": {
            "acceptContentTypes": connection.accept_content_types,
            "burst": connection.burst,
            "contentType": connection.content_type,
            "kubeconfig": connection.kubeconfig,
            "qps": Number(json_float(connection.qps, bits=32)),
        },
        "enableContentionProfiling": config.enable_contention_profiling,
        "enableProfiling": config.enable_profiling,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": format_duration(election.lease_duration_ns),
            "renewDeadline": format_duration(election.renew_deadline_ns),
            "resourceLock": election.resource_lock,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
            "retryPeriod": format_duration(election.retry_period_ns),
        },
        "parallelism": config.parallelism,
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "profiles": [_profile(profile) for profile in config.profiles],
        **omit_empty(
            extenders=[_extender(extender) for extender in config.extenders],
            delayCacheUntilActive=config.delay_cache_until_active,
            explainInCondition=config.explain_in_condition,
            sharding={} if config.sharding is None else _sharding(config.sharding),
        ),
    }


def _sharding(sharding: Sharding) -> dict[str, Any]:
    return {"shards": sharding.shards, **omit_empty(nodeLabel=sharding.node_label)}


def _profile(profile: Profile) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "schedulerName": profile.scheduler_name,
        "plugins": {
            key: _plugin_set(profile.plugins[point]) for key, point in ALL_POINTS.items() if point in profile.plugins
        },
        **omit_empty(pluginConfig=[_plugin_config(entry) for entry in profile.plugin_config]),
    }
    if profile.percentage_of_nodes_to_score is not None:
        fields["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    return fields


def _plugin_set(plugin_set: PluginSet) -> dict[str, Any]:
    return omit_empty(enabled=_plugin_refs(plugin_set.enabled), disabled=_plugin_refs(plugin_set.disabled))


def _plugin_refs(refs: Sequence[PluginRef]) -> list[dict[str, Any]]:
    return [{"name": ref.name, "weight": ref.weight} for ref in refs]


def _plugin_config(entry: PluginConfig) -> dict[str, Any]:
    if isinstance(entry.args, RawArguments):
        return {"name": entry.name, "args": _with_numbers(entry.args.tree)}
    return {"name": entry.name, "args": None if entry.args is None else dump_arguments(entry.args)}


def _with_numbers(tree: Tree) -> Any:
    """*tree* as mappings and lists, its numbers still as they were written."""
    if isinstance(tree, Object):
        return {key: _with_numbers(value) for key, value in tree.pairs}
    return [_with_numbers(item) for item in tree.items] if isinstance(tree, Array) else tree


def _extender(extender: Extender) -> dict[str, Any]:
    tls = extender.tls_config
    return {
        "urlPrefix": extender.url_prefix,
        "httpTimeout": format_duration(extender.http_timeout_ns),
        **omit_empty(
            filterVerb=extender.filter_verb,
            preemptVerb=extender.preempt_verb,
            prioritizeVerb=extender.prioritize_verb,
            weight=extender.weight,
            bindVerb=extender.bind_verb,
            enableHTTPS=extender.enable_https,
            nodeCacheCapable=extender.node_cache_capable,
            managedResources=[
                {"name": resource.name, **omit_empty(ignoredByScheduler=resource.ignored_by_scheduler)}
                for resource in extender.managed_resources
            ],
            ignorable=extender.ignorable,
        ),
        **({} if tls is None else {"tlsConfig": _extender_tls(tls)}),
    }


def _extender_tls(tls: ExtenderTls) -> dict[str, Any]:
    return omit_empty(
        insecure=tls.insecure,
        serverName=tls.server_name,
        certFile=tls.cert_file,
        keyFile=tls.key_file,
        caFile=tls.ca_file,
        certData=base64.b64encode(tls.cert_data).decode(),
        keyData=base64.b64encode(tls.key_data).decode(),
        caData=base64.b64encode(tls.ca_data).decode(),
    )
