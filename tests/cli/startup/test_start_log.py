"""What the log of a start says, and what it never says."""

import base64
import json
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import trustme
from certificate_files import write_certificate
from kubeconfig_text import kubeconfig
from real_servers import eventually, process

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.startup.start_log import log_settings, without_secrets
from trio_sched.config.feature_gates import outdated_gates
from trio_sched.simulator import ApiServer, populate, serve

SECRET: Final = "hunter2-do-not-log-this"
EXEC_PLUGIN: Final = """\
import json, os, sys
status = {"token": os.environ["PLUGIN_SECRET"] + "-token"}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""
POD: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": f"{SECRET}-env"}]}]},
}
NODE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}

User = Callable[[Path, trustme.CA], dict[str, Any]]


def token(_folder: Path, _authority: trustme.CA) -> dict[str, Any]:
    return {"token": f"{SECRET}-token"}


def token_file(folder: Path, _authority: trustme.CA) -> dict[str, Any]:
    (folder / "token").write_text(f"{SECRET}-token")
    return {"tokenFile": str(folder / "token")}


def password(_folder: Path, _authority: trustme.CA) -> dict[str, Any]:
    return {"username": "u", "password": f"{SECRET}-password"}


def certificate(_folder: Path, authority: trustme.CA) -> dict[str, Any]:
    leaf = authority.issue_cert("client.test")
    return {
        "client-certificate-data": base64.b64encode(leaf.cert_chain_pems[0].bytes()).decode(),
        "client-key-data": base64.b64encode(leaf.private_key_pem.bytes()).decode(),
    }


def exec_plugin(folder: Path, _authority: trustme.CA) -> dict[str, Any]:
    (folder / "plugin.py").write_text(EXEC_PLUGIN)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(folder / "plugin.py")],
            "env": [{"name": "PLUGIN_SECRET", "value": SECRET}],
            "interactiveMode": "Never",
        }
    }


USERS: Final = [token, token_file, password, certificate, exec_plugin]


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.__name__)
async def test_no_secret_is_in_the_log_at_the_highest_verbosity(user: User, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate_file, key = write_certificate(authority, "127.0.0.1", tmp_path)
    credentials = user(tmp_path, authority)
    api, log_file = ApiServer(), tmp_path / "log"
    populate(api, [NODE, POD])
    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, api, certificate=certificate_file, private_key=key))
        ca_data = base64.b64encode(authority.cert_pem.bytes()).decode()
        cluster = {"server": url, "certificate-authority-data": ca_data}
        (tmp_path / "kubeconfig").write_text(kubeconfig(cluster=cluster, user=credentials))
        leaf = certificate(tmp_path, authority)
        tls = {"certData": leaf["client-certificate-data"], "keyData": leaf["client-key-data"]}
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig")},
            "extenders": [
                {
                    "urlPrefix": f"https://user:{SECRET}-url@127.0.0.1:1/x",
                    "filterVerb": "filter",
                    "ignorable": True,
                    "tlsConfig": tls,
                }
            ],
        }
        (tmp_path / "config").write_text(json.dumps(configuration))
        command = [sys.executable, "-m", "trio_sched", f"--config={tmp_path / 'config'}", "--secure-port=0", "-v=10"]

        async def is_bound() -> bool:
            return "Successfully bound pod to node" in log_file.read_text()

        async with process(command, log_file) as scheduler:
            await eventually(is_bound, within_seconds=20)
            scheduler.send_signal(signal.SIGTERM)
            await scheduler.wait()
        nursery.cancel_scope.cancel()
    logged = log_file.read_text()
    assert '"Request Body"' in logged
    assert "curlCommand" in logged
    hidden = [SECRET, base64.b64encode(SECRET.encode()).decode()[:20], tls["keyData"][:60], "PRIVATE KEY"]
    hidden.append(base64.b64encode(f"u:{SECRET}-password".encode()).decode())
    hidden.append(credentials.get("client-key-data", tls["keyData"])[:60])
    assert [secret for secret in hidden if secret in logged] == []


def test_keys_passwords_and_users_in_addresses_are_masked() -> None:
    text = "keyData: abc\n- apiToken: x\nurl: https://u:p@host/x\nname: plain\nmySecretName: s\n"
    assert without_secrets(text) == (
        "keyData: <masked>\n- apiToken: <masked>\nurl: https://<masked>@host/x\nname: plain\nmySecretName: <masked>\n"
    )


def test_the_flags_about_logs_are_settings() -> None:
    flags = ["-v=3", "--vmodule=a=4", "--log-text-split-stream", "--log-text-info-buffer-size=1Ki"]
    settings = log_settings(parse_flags([*flags, "--log-flush-frequency=2s"]))
    assert (settings.format, settings.verbosity, settings.vmodule) == ("text", 3, (("a", 4),))
    assert (settings.split_stream, settings.info_buffer_bytes, settings.flush_seconds) == (True, 1024, 2.0)
    assert not log_settings(parse_flags([*flags, "--logging-format=json"])).split_stream


def test_gates_that_will_not_exist_for_ever_are_named() -> None:
    settings = ["DynamicResourceAllocation=true,AllAlpha=true", "kube:NodeDeclaredFeatures=false"]
    with pytest.raises(Exception, match="do not mix use"):
        outdated_gates(settings, (1, 36))
    (gate,) = outdated_gates([settings[0]], (1, 36))
    assert (gate.name, gate.value, gate.stage) == ("DynamicResourceAllocation", True, "GA")
    assert outdated_gates(["AllowDNSOnlyNodeCSR=true"], (1, 36))[0].stage == "deprecated"
    assert logging.getLevelName(19) == "V1"
