"""An API server in this process, a client of it, and the parts of a scheduler; none that runs."""

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from random import Random
from typing import Any

import msgspec
import pytest
from attrs import define, evolve, field
from msgspec.structs import replace

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import MULTI_POINT, PluginRef
from trio_sched.daemon.assembly import Assembly, assemble
from trio_sched.daemon.settings import Clients, DaemonSettings
from trio_sched.engine.decision import Decision, Placed
from trio_sched.engine.plugin_registry import PluginRegistry, points_of
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.kube_client.watch import Change, Changes
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, Status, hookimpl, on, unschedulable
from trio_sched.simulator import ApiServer, InProcessTransport, trio_clock
from trio_sched.snapshot.node_columns import NodeColumns


@pytest.fixture
async def api() -> ApiServer:
    return ApiServer(now=trio_clock())


@pytest.fixture
async def client(api: ApiServer) -> AsyncIterator[KubeClient]:
    settings = ConnectionSettings(server="http://api.test")
    async with connect(settings, qps=-1, transport=InProcessTransport(api), request_seconds=30) as client:
        yield client


class Store:
    """Puts objects into the API server, and looks at what became of them."""

    def __init__(self, api: ApiServer, client: KubeClient) -> None:
        self.api, self.client = api, client

    async def create_pod(self, pod: Pod) -> Pod:
        body = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
        return await verbs.create(self.client, POD_KIND, msgspec.json.encode(body), namespace=pod.namespace)

    async def create_node(self, node: Node) -> Node:
        body = {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
        return await verbs.create(self.client, NODE_KIND, msgspec.json.encode(body))

    def pod(self, name: str) -> dict[str, Any]:
        stored = self.api.store.get("pods", f"default/{name}")
        assert stored is not None
        return stored.fields

    def events(self) -> list[dict[str, Any]]:
        return [stored.fields for stored in self.api.store.collection("events").objects.values()]


@pytest.fixture
async def store(api: ApiServer, client: KubeClient) -> Store:
    return Store(api, client)


@pytest.fixture
def assembled(client: KubeClient, api: ApiServer) -> Callable[..., Assembly]:
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
        resolved = resolved.limited_to(registry)
        if bare:
            resolved = resolved.limited_to({"PrioritySort", "DefaultBinder", *(plugin.name for plugin in plugins)})
        settings = DaemonSettings(
            config=config,
            gates=enabled,
            profiles=(resolved,),
            registry=registry,
            identity="me",
        )
        clients = Clients(main=client, events=client, leases=client)
        return assemble(settings, clients, random=Random(1), wall_clock=api.now)

    return assembled


@define(eq=False, slots=False)
class Stage:
    """A mirror and the engine behind it; objects get a new version each time they are shown."""

    assembly: Assembly
    _versions: Any = field(factory=lambda: count(1))

    def __attrs_post_init__(self) -> None:
        self.mirror, self.queue = self.assembly.mirror, self.assembly.scheduler.queue
        self.cache, self.pending = self.assembly.scheduler.cache, self.assembly.mirror.pending

    def stamp(self, thing: Any) -> Any:
        return replace(thing, metadata=replace(thing.metadata, resource_version=str(next(self._versions))))

    def _take(self, *changes: Change[Any]) -> None:
        subject = changes[0].new if changes[0].new is not None else changes[0].old
        take = self.mirror.nodes_changed if isinstance(subject, Node) else self.mirror.pods_changed
        take(Changes(list(changes), "1"))

    def add(self, *things: Any) -> list[Any]:
        stamped = [self.stamp(thing) for thing in things]
        for thing in stamped:
            self._take(Change("ADDED", None, thing))
        return stamped

    def update(self, old: Any, new: Any) -> Any:
        new = self.stamp(new)
        self._take(Change("MODIFIED", old, new))
        return new

    def delete(self, old: Any, last: Any = None) -> None:
        self._take(Change("DELETED", old, last))

    def attempt(self) -> Decision:
        """Let the engine decide about the next pod, up to the point where it would be bound."""
        info = self.queue.pop()
        assert info is not None
        decision = self.assembly.scheduler.decide(info)
        if isinstance(decision, Placed):
            assert self.assembly.scheduler.assume_and_reserve(info.pod, decision) is None
            self.queue.done(info.uid)
        else:
            self.assembly.schedule_one.failures.handle(info, decision)
        return decision

    def refuse(self, *pods: Pod) -> list[Pod]:
        """Add *pods*, which the engine then finds no node for."""
        added = self.add(*pods)
        for _ in pods:
            assert not isinstance(self.attempt(), Placed)
        assert [self.where(each) for each in added] == ["unschedulable"] * len(added)
        return added

    def assume(self, new: Pod) -> Pod:
        """Add *new*, which the engine then finds a node for."""
        (added,) = self.add(new)
        assert isinstance(self.attempt(), Placed)
        assert self.cache.is_assumed(added.uid)
        return added  # type: ignore[no-any-return]

    def where(self, one: Pod) -> str:
        """The part of the queue that *one* is in."""
        places = {
            "active": self.queue.active,
            "backoff": self.queue.backing_off,
            "unschedulable": self.queue.unschedulable,
        }
        found = [name for name, place in places.items() if one.key in place]
        assert len(found) <= 1
        return found[0] if found else ""

    def cpu(self, node_name: str) -> int:
        """What pods on the node have asked for, in thousandths."""
        row = self.cache.table.row_of[node_name]
        return int(NodeColumns(self.cache.table).requested[0, row])


@pytest.fixture
def staged(assembled: Callable[..., Assembly]) -> Callable[..., Stage]:
    """Make a `Stage` with *plugins*."""
    return lambda *plugins, **options: Stage(assembled(*plugins, **options))


@pytest.fixture
def stage(staged: Callable[..., Stage]) -> Stage:
    return staged()


@pytest.fixture
def picky() -> Callable[..., type[Any]]:
    """Make a plugin that refuses pods with the label ``picky`` and registers for some (resource, actions)."""

    def picky(*waits_for: tuple[str, Action]) -> type[Any]:
        class Picky:
            name = "Picky"

            def __init__(self, args: None, handle: Any) -> None: ...

            @hookimpl
            def filter_node(self, pod: Any) -> Status | None:
                return unschedulable("not good enough") if "picky" in pod.labels else None

            @hookimpl
            def events_to_register(self) -> list[Any]:
                return [on(resource, action) for resource, action in waits_for]

        return Picky

    return picky
