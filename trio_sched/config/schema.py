"""The completed configuration: every field of the file, with every default filled in.

Names are the file's in snake case; durations are whole nanoseconds.
"""

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from trio_sched.config.wire_types import POINTS
from trio_sched.documents.tree import Tree, plain
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.arguments import PluginArguments

MULTI_POINT: Final = "multi_point"


@frozen(kw_only=True)
class LeaderElection:
    """``leaderElection``: whether and how one of several instances is chosen to schedule."""

    leader_elect: bool = True
    lease_duration_ns: int = 15 * SECOND_NS
    renew_deadline_ns: int = 10 * SECOND_NS
    retry_period_ns: int = 2 * SECOND_NS
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


@frozen(kw_only=True)
class ClientConnection:
    """``clientConnection``: how the API server is reached, and at which rate requests are sent."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


@frozen
class PluginRef:
    """A plugin by name, with its weight (0 where none is given)."""

    name: str
    weight: int = 0


@frozen(kw_only=True)
class PluginSet:
    """What is enabled and disabled at one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


@frozen
class RawArguments:
    """Arguments of a plugin that is not in-tree: their fields are defined by the plugin."""

    tree: Tree

    def value(self) -> Any:
        """The arguments as dictionaries, lists and scalars."""
        return plain(self.tree)


@frozen(kw_only=True)
class PluginConfig:
    """One entry of ``pluginConfig``; *args* is None for a plugin without in-tree arguments for which none are given."""

    name: str
    args: PluginArguments | RawArguments | None = None


@frozen(kw_only=True)
class Profile:
    """One entry of ``profiles``: its plugins per point (``multi_point`` included) and their arguments."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[str, PluginSet] = field(factory=lambda: dict.fromkeys(POINTS.values(), PluginSet()))
    plugin_config: tuple[PluginConfig, ...] = ()

    def arguments_of(self, plugin: str) -> PluginArguments | RawArguments | None:
        """The arguments of *plugin*, if there are any."""
        return next((entry.args for entry in self.plugin_config if entry.name == plugin), None)


@frozen(kw_only=True)
class ExtenderTls:
    """``tlsConfig`` of an extender; data take precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = field(default=b"", repr=False)
    ca_data: bytes = b""


@frozen(kw_only=True)
class ManagedResource:
    """A resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


@frozen(kw_only=True)
class Extender:
    """One entry of ``extenders``: a webhook that filters, scores, preempts or binds."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTls | None = None
    http_timeout_ns: int = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@frozen(kw_only=True)
class Sharding:
    """``sharding``: several replicas schedule at a time, each for some of the shards."""

    shards: int = 0
    """How many there are; the same in all replicas."""
    node_label: str = ""
    """The label whose value says which shard a node belongs to; empty, and for nodes without it: its name does."""


@frozen(kw_only=True)
class SchedulerConfig:
    """``KubeSchedulerConfiguration``, completed."""

    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    explain_in_condition: bool = False
    """Whether the message of a pending pod's condition ends with the first change that would let it run."""
    sharding: Sharding | None = None
    """None: one replica schedules, the others wait."""
