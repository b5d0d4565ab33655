"""For tests of the daemon over sockets: its settings, and an embedded API server to populate."""

import socket
from typing import Any

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.engine.registry.plugin_registry import PluginRegistry

_AMOUNTS = {"cpu": "32", "memory": "64Gi", "pods": "110"}


def manifest(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def node_manifests(count: int) -> list[dict[str, Any]]:
    """The nodes ``n0``, ``n1``, … of 32 cores each."""
    status = {"allocatable": _AMOUNTS, "capacity": _AMOUNTS}
    return [manifest("Node", f"n{number}", status=status) for number in range(count)]


def daemon_settings(config: SchedulerConfig) -> DaemonSettings:
    """The settings that the command line would make of *config*."""
    registry = PluginRegistry.discover()
    profiles = resolve_profiles(config, KNOWN_PLUGINS)
    return DaemonSettings(config=config, gates=DEFAULT_GATES, profiles=profiles, registry=registry, identity="me")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
