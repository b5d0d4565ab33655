"""An API server in this process, a client of it, and the parts of a scheduler; none that runs."""

from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any

import pytest
from attrs import evolve
from daemon_clients import one_for_all
from stage import Assemble, MakeStage, Stage
from stored_objects import Store

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import MULTI_POINT, PluginRef
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.metrics.requests import RequestLogs
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.engine.registry.plugin_registry import PluginRegistry, points_of
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport, trio_clock


@pytest.fixture
async def api() -> ApiServer:
    return ApiServer(now=trio_clock())


@pytest.fixture
def request_logs() -> RequestLogs:
    return RequestLogs()


@pytest.fixture
async def client(api: ApiServer, request_logs: RequestLogs) -> AsyncIterator[KubeClient]:
    settings = ConnectionSettings(server="http://api.test")
    log = request_logs.of(settings.server)
    opened = connect(settings, qps=-1, transport=InProcessTransport(api), request_seconds=30, observer=log)
    async with opened as client:
        yield client


@pytest.fixture
async def store(api: ApiServer, client: KubeClient) -> Store:
    return Store(api, client)


@pytest.fixture
def assembled(client: KubeClient, request_logs: RequestLogs, api: ApiServer) -> Assemble:
    """Put a daemon's parts together, with *plugins* besides the default ones; nothing of it runs.

    With *bare* only what a profile cannot do without is there besides *plugins*.
    """

    def assembled(*plugins: type[Any], gates: Mapping[str, bool] | None = None, bare: bool = False) -> Assembly:
        registry = PluginRegistry.discover()
        for plugin in plugins:
            registry.add(plugin)
        enabled = FeatureGates(overrides=dict(gates or {}))
        config = load_configuration(None, gates=enabled)
        points = {**KNOWN_PLUGINS, **{plugin.name: points_of(plugin) for plugin in plugins}}
        (profile,) = config.profiles
        everywhere = profile.plugins[MULTI_POINT]
        extra = tuple(PluginRef(plugin.name) for plugin in plugins)
        profile = evolve(
            profile,
            plugins={**profile.plugins, MULTI_POINT: evolve(everywhere, enabled=(*everywhere.enabled, *extra))},
        )
        config = evolve(config, profiles=(profile,))
        (resolved,) = resolve_profiles(config, points, enabled)
        if bare:
            kept = {"PrioritySort", "DefaultBinder", *(plugin.name for plugin in plugins)}
            used = {point: tuple(ref for ref in refs if ref.name in kept) for point, refs in resolved.points.items()}
            without_point = tuple(name for name in resolved.without_point if name in kept)
            resolved = evolve(resolved, points=used, without_point=without_point)
        settings = DaemonSettings(
            config=config,
            gates=enabled,
            profiles=(resolved,),
            registry=registry,
            identity="me",
        )
        return assemble(settings, one_for_all(client, request_logs), random=Random(1), wall_clock=api.now)

    return assembled


@pytest.fixture
def staged(assembled: Assemble) -> MakeStage:
    """Make a `Stage` with *plugins*."""
    return lambda *plugins, **options: Stage(assembled(*plugins, **options))


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    return staged()
