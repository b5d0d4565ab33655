"""Authorities from files and from the ConfigMap of the cluster."""

import json
import logging
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from client_authority import ClientAuthority

from trio_sched.daemon.serving.authentication import authentication_lookup
from trio_sched.daemon.serving.authentication.authentication_lookup import AuthenticationLookup
from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving_settings import AuthenticationSettings
from trio_sched.documents import files
from trio_sched.kube_client.connection import KubeClient
from trio_sched.simulator import ApiServer, populate

CLIENTS, PROXIES = ClientAuthority("clients"), ClientAuthority("proxies")


def config_map(**data: str) -> dict[str, Any]:
    keys = {key.replace("_", "-"): value for key, value in data.items()}
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": keys}


FULL = config_map(
    client_ca_file=CLIENTS.pem,
    requestheader_client_ca_file=PROXIES.pem,
    requestheader_allowed_names=json.dumps(["front"]),
    requestheader_username_headers=json.dumps(["X-User"]),
)


async def put(api: ApiServer, body: dict[str, Any]) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    answer = await api.handle("PUT", path, "", {"content-type": "application/json"}, json.dumps(body).encode())
    assert answer.status == 200


async def until(check: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    with trio.fail_after(10):
        for _ in count():
            if check():
                return
            await trio.sleep(0.01)


async def test_the_config_map_is_looked_up_and_followed(
    api: ApiServer, client: KubeClient, autojump_clock: object
) -> None:
    populate(api, [FULL])
    lookup = AuthenticationLookup(settings=AuthenticationSettings())
    await lookup.look_up(client)
    assert not lookup.clients.is_empty
    assert lookup.proxies.settings.allowed_names == ("front",)
    assert lookup.proxies.settings.username_headers == ("X-User",)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lookup.follow, client, Random(0))
        await trio.sleep(1)
        await put(api, config_map(requestheader_client_ca_file=PROXIES.pem, requestheader_allowed_names='["other"]'))
        await trio.sleep(1)
        assert lookup.clients.is_empty
        assert lookup.proxies.settings.allowed_names == ("other",)
        await put(api, config_map(client_ca_file="junk", requestheader_client_ca_file=PROXIES.pem))
        await put(api, config_map(client_ca_file=CLIENTS.pem, requestheader_allowed_names="no json"))
        await trio.sleep(1)
        assert not lookup.clients.is_empty
        assert lookup.proxies.authorities.is_empty
        nursery.cancel_scope.cancel()


async def test_a_front_proxy_whose_allowed_names_cannot_be_read_is_not_believed(
    api: ApiServer, client: KubeClient
) -> None:
    populate(api, [config_map(requestheader_client_ca_file=PROXIES.pem, requestheader_allowed_names="{")])
    lookup = AuthenticationLookup(settings=AuthenticationSettings())
    await lookup.look_up(client)
    assert lookup.proxies.authorities.is_empty


async def test_files_take_precedence_and_are_read_again(
    api: ApiServer,
    client: KubeClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(authentication_lookup, "RELOAD_SECONDS", 0.01)
    populate(api, [FULL])
    file = tmp_path / "ca.pem"
    file.write_text(PROXIES.pem)
    lookup = AuthenticationLookup(settings=AuthenticationSettings(client_ca_file=str(file)))
    lookup.read_files()
    await lookup.look_up(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lookup.follow, client, Random(0))
        file.write_text("broken")
        await until(lambda: "certificate authorities are not replaced" in caplog.text)
        assert lookup.clients._pem == PROXIES.pem
        file.write_text(CLIENTS.pem)
        await until(lambda: lookup.clients._pem == CLIENTS.pem)
        nursery.cancel_scope.cancel()


async def test_a_look_up_that_fails_warns_or_ends_the_start(
    api: ApiServer, client: KubeClient, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.fail_next(2, code=403, message="you may not")
    await AuthenticationLookup(settings=AuthenticationSettings()).look_up(client)
    assert "Continuing without authentication configuration." in caplog.text
    strict = AuthenticationSettings(tolerate_lookup_failure=False)
    with pytest.raises(ServingError, match="unable to load configmap based request-header-client-ca-file: you may not"):
        await AuthenticationLookup(settings=strict).look_up(client)


async def test_a_server_that_hangs_does_not_hold_up_the_start(
    api: ApiServer, client: KubeClient, autojump_clock: object
) -> None:
    api.faults.set_latency(1000.0)
    await AuthenticationLookup(settings=AuthenticationSettings()).look_up(client)
    assert trio.current_time() < 20


async def test_without_a_kubeconfig_the_log_says_what_does_not_work(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    await AuthenticationLookup(settings=AuthenticationSettings()).look_up(None)
    assert [record.getMessage() for record in caplog.records] == [
        "No authentication-kubeconfig provided in order to lookup client-ca-file in "
        "configmap/extension-apiserver-authentication in kube-system, so client certificate authentication won't work.",
        "No authentication-kubeconfig provided in order to lookup requestheader-client-ca-file in "
        "configmap/extension-apiserver-authentication in kube-system, so request-header client certificate "
        "authentication won't work.",
    ]
    caplog.clear()
    await AuthenticationLookup(settings=AuthenticationSettings(skip_lookup=True)).look_up(None)
    assert caplog.records == []


def test_a_file_without_certificates_ends_the_start(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    lookup = AuthenticationLookup(settings=AuthenticationSettings(client_ca_file=str(file)))
    with pytest.raises(ServingError, match="data does not contain any valid certificates"):
        lookup.read_files()


async def test_a_file_that_has_become_a_pipe_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication_lookup, "RELOAD_SECONDS", 0.01)
    monkeypatch.setattr(files, "PIPE_WAIT_SECONDS", 2.0)
    path = tmp_path / "ca.pem"
    path.write_text(CLIENTS.pem)
    lookup = AuthenticationLookup(settings=AuthenticationSettings(client_ca_file=str(path)))
    lookup.read_files()
    path.unlink()
    os.mkfifo(path)
    began = trio.current_time()
    with trio.move_on_after(0.2):
        await lookup.follow(None, Random(0))
    assert trio.current_time() - began < 1.0
    assert not lookup.clients.is_empty
