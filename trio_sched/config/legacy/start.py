"""Converts a command line without a configuration file, with flags of former versions."""

from typing import Any, Final

from attrs import frozen

from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.legacy.addresses import INSECURE_PORT_GONE
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.conversion import Conversion, v1_document
from trio_sched.config.legacy.policy import policy_into
from trio_sched.config.legacy.profile_document import write_profile
from trio_sched.config.legacy.profile_draft import ProfileDraft
from trio_sched.config.legacy.provider import provider_into
from trio_sched.config.legacy.values import without_empty
from trio_sched.documents.tree import Number
from trio_sched.go.text import json_float

_DEFAULT_NAME: Final = "default-scheduler"


@frozen(kw_only=True)
class OldStart:
    """The values of the flags of former versions; None or empty for those that were not given."""

    policy: str | None = None
    """The text of the policy."""
    algorithm_provider: str = ""
    scheduler_name: str = ""
    hard_pod_affinity_weight: int | None = None
    lock_object_name: str = ""
    lock_object_namespace: str = ""
    bind_pods_qps: float | None = None
    bind_pods_burst: int | None = None
    port: int | None = None
    address: str = ""
    failure_domains: str = ""


def convert_start(start: OldStart, flags: FlagOverrides) -> Conversion:
    """The configuration file that does what old flags did.

    Args:
        start: the flags of former versions.
        flags: the others; those that do not apply beside a configuration file are written into the document.

    Raises:
        ConfigError: something cannot be converted.
    """
    changes = Changes()
    fields = _connection(start, flags, changes)
    fields["leaderElection"] = _lock(start, changes)
    profile, fields["extenders"] = _profile(start, changes)
    fields["profiles"] = [profile] if profile else []
    if start.port == 0:
        changes.note("--port", f"leave it out, because {INSECURE_PORT_GONE}")
    elif start.port is not None:
        changes.refuse("--port", f"must be 0, not {start.port}: {INSECURE_PORT_GONE}")
    if start.address:
        changes.note(
            "--address", "means nothing any more: it was for the port without TLS; --bind-address is for HTTPS"
        )
    if start.failure_domains:
        changes.note("--failure-domains", "means nothing any more: every topologyKey must be given")
    changes.raise_problems("the command line")
    return Conversion(source="the command line", document=v1_document(fields), notes=tuple(changes.notes))


def _profile(start: OldStart, changes: Changes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The one profile, and the extenders of the policy if there is one."""
    name = None if start.scheduler_name == _DEFAULT_NAME else start.scheduler_name or None
    draft = ProfileDraft(name)
    extenders: list[dict[str, Any]] = []
    if start.scheduler_name:
        changes.note(
            "--scheduler-name", "now profiles[0].schedulerName" if name else "leave it out: it is so by default"
        )
    if (weight := start.hard_pod_affinity_weight) is not None:
        draft.arguments_of("InterPodAffinity")["hardPodAffinityWeight"] = weight
        flag = "--hard-pod-affinity-symmetric-weight"
        changes.note(flag, "now hardPodAffinityWeight of InterPodAffinityArgs")
    if start.policy is not None:
        changes.note("the policy", "now profiles[0] and extenders")
        extenders = policy_into([draft], start.policy, changes)
        if start.algorithm_provider:
            changes.note("--algorithm-provider", "means nothing beside a policy, and never did")
    elif start.algorithm_provider:
        provider_into(draft, start.algorithm_provider, changes, "--algorithm-provider")
    profile = write_profile(draft)
    if start.policy is None and not start.algorithm_provider:
        # Neither a policy nor a provider is given, so today's default plugins run.
        profile.pop("plugins", None)
    return profile, extenders


def _connection(start: OldStart, flags: FlagOverrides, changes: Changes) -> dict[str, Any]:
    """The connection of the flags that apply only without a configuration file."""
    qps = flags.qps if flags.qps is not None else start.bind_pods_qps
    burst = flags.burst if flags.burst is not None else start.bind_pods_burst
    if start.bind_pods_qps is not None:
        changes.note("--bind-pods-qps", "now clientConnection.qps, with all other requests")
    if start.bind_pods_burst is not None:
        changes.note("--bind-pods-burst", "now clientConnection.burst, with all other requests")
    connection = {
        "kubeconfig": flags.kubeconfig,
        "contentType": flags.content_type,
        "qps": None if qps is None else Number(json_float(qps, bits=32)),
        "burst": burst,
    }
    debugging = {"enableProfiling": flags.profiling, "enableContentionProfiling": flags.contention_profiling}
    return without_empty({"clientConnection": without_empty(connection), **debugging})


def _lock(start: OldStart, changes: Changes) -> dict[str, Any]:
    lock = {"resourceName": start.lock_object_name, "resourceNamespace": start.lock_object_namespace}
    if start.lock_object_name:
        changes.note("--lock-object-name", "now leaderElection.resourceName")
    if start.lock_object_namespace:
        changes.note("--lock-object-namespace", "now leaderElection.resourceNamespace")
    return {key: value for key, value in lock.items() if value}
