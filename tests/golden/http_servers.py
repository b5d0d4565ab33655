"""The servers of the recorded requests: schedulers in this process, in front of simulated API servers."""

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import trio
from attrs import define, field
from client_authority import ClientAuthority

from contrib.control_plane.servers import ServerFiles
from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.options.daemon_settings import daemon_settings
from trio_sched.cli.plugin_loading.chosen_plugins import PointsByPlugin
from trio_sched.cli.startup.prepare import prepare
from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.clients import open_clients
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.simulator import ApiServer, allows_by_bootstrap_roles, populate, serve
from trio_sched.simulator.endpoints.messages import Response

Json = dict[str, Any]


class RefusingServer(ApiServer):
    """An API server that allows nothing."""

    async def handle(self, *_args: Any, **_kwargs: Any) -> Response:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
        return Response(403, msgspec.json.encode(status))


@define(eq=False)
class HttpServers:
    """All servers of a set-up."""

    setup: Json
    folder: Path
    ports: dict[str, int] = field(factory=dict)
    assemblies: dict[str, Assembly] = field(factory=dict)
    authorities: dict[str, ClientAuthority] = field(factory=dict)
    values: dict[str, dict[str, str]] = field(factory=dict)
    """By server: the placeholders and what stands for them."""

    def __attrs_post_init__(self) -> None:
        names = {one["signedBy"] for one in self.setup["clientCerts"].values()}
        self.authorities = {name: ClientAuthority(name) for name in sorted(names | {"client-ca", "proxy-ca"})}

    def token(self, role: str) -> str:
        return f"token-of-{role}"

    def certificate(self, role: str) -> tuple[bytes, bytes]:
        wanted = self.setup["clientCerts"][role]
        return self.authorities[wanted["signedBy"]].issue(wanted["CN"], tuple(wanted.get("O", ())))

    def api_server(self) -> ApiServer:
        users = {
            self.token(role): (user["user"], [*user["groups"], "system:authenticated"])
            for role, user in self.setup["users"].items()
            if isinstance(user, dict)
        }
        server = ApiServer(users=users, allows=allows_by_bootstrap_roles)
        populate(server, [*self.setup["objects"], self._config_map()])
        return server

    def _config_map(self) -> Json:
        data = {
            key: self.authorities[value].pem if isinstance(value, str) else json.dumps(value)
            for key, value in self.setup["authenticationConfigMap"].items()
        }
        name = {"namespace": "kube-system", "name": "extension-apiserver-authentication"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": data}

    def prepare_files(self, urls: Mapping[str, str], authority: Path) -> None:
        """Write the files that flags name, for every server.

        Args:
            urls: placeholder of a kubeconfig → the address in it.
            authority: who signed the certificates of the API servers.
        """
        shared = {"{client-ca}": str(self.folder / "client-ca.pem")}
        Path(shared["{client-ca}"]).write_text(self.authorities["client-ca"].pem)
        for placeholder, url in urls.items():
            shared[placeholder] = str(self.folder / f"{placeholder[1:-1]}.json")
            Path(shared[placeholder]).write_text(_kubeconfig(url, authority, self.token("sched")))
        for name, server in self.setup["servers"].items():
            self.ports[name] = _free_port()
            values = self.values[name] = {
                **shared,
                "{config}": str(self.folder / f"{name}.yaml"),
                "{port}": str(self.ports[name]),
            }
            Path(values["{config}"]).write_text(filled(server["config"], values))

    async def run(self, name: str, registry: PluginRegistry, stop: trio.Event) -> None:
        """Run one server until *stop*."""
        values = self.values[name]
        flags = ["--config={config}", *self.setup["commonFlags"], *self.setup["servers"][name]["flags"]]
        prepared = prepare(parse_flags([filled(flag, values) for flag in flags]), points_of=PointsByPlugin(registry))
        settings = daemon_settings(prepared, registry)
        async with open_clients(settings.config, prepared.connection) as clients:
            assembly = assemble(settings, clients, random=Random(0), wall_clock=partial(datetime.now, UTC))
            self.assemblies[name] = assembly
            await run_daemon(assembly, stop=stop)


@asynccontextmanager
async def running_servers(setup: Json, folder: Path) -> AsyncIterator[HttpServers]:
    """Start everything; the servers are as ready as they can get."""
    servers, files = HttpServers(setup, folder), ServerFiles.write(folder)
    registry = PluginRegistry.discover()
    stop = trio.Event()
    async with AsyncExitStack() as stack:
        nursery = await stack.enter_async_context(trio.open_nursery())
        start = partial(serve, certificate=files.certificate, private_key=files.key)
        refusing = RefusingServer()
        urls = {
            "{kubeconfig}": await nursery.start(start, servers.api_server()),
            "{weak-kubeconfig}": await nursery.start(start, refusing),
        }
        servers.prepare_files(urls, files.authority)
        async with trio.open_nursery() as schedulers:
            for name, server in setup["servers"].items():
                schedulers.start_soon(servers.run, name, registry, stop)
                refused = "{weak-kubeconfig}" in server["config"]
                with trio.fail_after(30):
                    while not (refused or _is_ready(servers, name)):  # noqa: ASYNC110  # nothing tells when it leads
                        await trio.sleep(0.02)
            yield servers
            stop.set()
        nursery.cancel_scope.cancel()


def _is_ready(servers: HttpServers, name: str) -> bool:
    assembly = servers.assemblies.get(name)
    return assembly is not None and assembly.synced.is_set() and (name == "standby" or assembly.schedule_one.is_running)


def filled(text: str, values: Mapping[str, str]) -> str:
    """*text* with values for its placeholders."""
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _kubeconfig(url: str, authority: Path, token: str) -> str:
    cluster = {"server": url, "certificate-authority": str(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    return json.dumps(document)
