"""Faults of the API server, of etcd, and of what the API server lets the scheduler do."""

from __future__ import annotations

import signal

import trio
import trustme

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.faults.cluster import Cluster

_FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
_RBAC = b"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_ACCOUNT = b"/api/v1/namespaces/kube-system/serviceaccounts"
_SECRETS = b"/api/v1/namespaces/kube-system/secrets"
REVOKED_SECONDS = 15.0
"""An API server accepts a token for ten seconds more once it has checked it."""


async def restart_api_server(here: Cluster, *, number: int, down_seconds: float = 0.0) -> None:
    """The API server ends and is started again."""
    await here.plane.api_server.stop(number)
    await trio.sleep(down_seconds)
    await here.plane.start_api_server()


async def api_server_away(here: Cluster, *, seconds: float) -> None:
    """The API server is down behind the relay, which goes on accepting."""
    await here.plane.api_server.stop(signal.SIGTERM)
    await trio.sleep(seconds)
    await here.plane.start_api_server()


async def suspend_api_server(here: Cluster, *, seconds: float) -> None:
    """The API server hangs."""
    here.plane.api_server.suspend()
    await trio.sleep(seconds)
    here.plane.api_server.resume()
    await here.plane.wait_ready()


async def lose_history(here: Cluster) -> None:
    """The history is compacted and the API server started again: watches get 410."""
    here.relay.refuse()
    here.relay.reset_all()
    for _ in range(5):
        await here.create_pod(nodeName="n0")
    await here.plane.api_server.stop(signal.SIGKILL)
    await here.plane.compact()
    await here.plane.start_api_server()
    await here.relay.listen()


async def restart_etcd(here: Cluster, *, down_seconds: float) -> None:
    """etcd is away for a while."""
    await here.plane.etcd.stop(signal.SIGKILL)
    await trio.sleep(down_seconds)
    await here.plane.start_etcd()
    await here.plane.wait_ready()


async def suspend_etcd(here: Cluster, *, seconds: float) -> None:
    """etcd hangs: writes wait, reads from caches work."""
    here.plane.etcd.suspend()
    await trio.sleep(seconds)
    here.plane.etcd.resume()
    await here.plane.wait_ready()


async def replace_authority(here: Cluster) -> None:
    """The API server gets a certificate of another authority; the bundle of the scheduler is replaced afterwards."""
    authority = here.replace_serving_certificate()
    await restart_api_server(here, number=signal.SIGTERM)
    await trio.sleep(5)
    here.authority.write_bytes(authority)


async def authority_first(here: Cluster) -> None:
    """The bundle has both authorities before the API server gets its new certificate."""
    former = here.authority.read_bytes()
    authority = here.replace_serving_certificate()
    here.authority.write_bytes(former + authority)
    await restart_api_server(here, number=signal.SIGTERM)


async def bundle_in_pieces(here: Cluster) -> None:
    """The same as `replace_authority`, but the bundle is written slowly, with a time when it is no certificate."""
    authority = here.replace_serving_certificate()
    await restart_api_server(here, number=signal.SIGTERM)
    here.authority.write_bytes(b"")
    await trio.sleep(1)
    here.authority.write_bytes(authority[: len(authority) // 2])
    await trio.sleep(1)
    here.authority.write_bytes(authority)


async def throttle(here: Cluster, *, seconds: float) -> None:
    """API Priority and Fairness has no seat for the scheduler: 429 with Retry-After."""
    level = {
        "metadata": {"name": "faults"},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            },
        },
    }
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "system:kube-scheduler"}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    schema = {
        "metadata": {"name": "faults"},
        "spec": {"priorityLevelConfiguration": {"name": "faults"}, "matchingPrecedence": 2, "rules": [rule]},
    }
    await here.call(b"POST", f"{_FLOW}/prioritylevelconfigurations".encode(), level)
    await here.call(b"POST", f"{_FLOW}/flowschemas".encode(), schema)
    here.relay.reset_all()
    await trio.sleep(seconds)
    await here.call(b"DELETE", f"{_FLOW}/flowschemas/faults".encode())
    await here.call(b"DELETE", f"{_FLOW}/prioritylevelconfigurations/faults".encode())
    await trio.sleep(1)  # until the API server has read that


async def forbid(here: Cluster, *, seconds: float) -> None:
    """The scheduler loses its role for a while."""
    binding = await here.call(b"GET", _RBAC + b"/system:kube-scheduler")
    await here.call(b"DELETE", _RBAC + b"/system:kube-scheduler")
    here.relay.reset_all()
    await trio.sleep(seconds)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        binding["metadata"].pop(name, None)
    await here.call(b"POST", _RBAC, binding)
    await trio.sleep(0.5)  # until the API server has read that


async def revoke_token(here: Cluster) -> float:
    """The token in the token file is revoked early; seconds later the file has another one."""
    account = {"metadata": {"name": "scheduler"}}
    await here.call(b"POST", _ACCOUNT, account)
    subject = {"kind": "ServiceAccount", "name": "scheduler", "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    await here.call(b"POST", _RBAC, {"metadata": {"name": "faults"}, "subjects": [subject], "roleRef": role})
    tokens = here.folder / "token"
    tokens.write_text(await _token(here, "first"))
    usual = here.kubeconfig.read_bytes()
    server = f"https://127.0.0.1:{here.relay.port}"
    write_kubeconfig(here.kubeconfig, server=server, authority=here.authority, token="", token_file=tokens)
    try:
        async with here.changed_scheduler():
            second = await _token(here, "second")
            await here.call(b"DELETE", _SECRETS + b"/first")
            await trio.sleep(REVOKED_SECONDS)
            here.relay.reset_all()
            await trio.sleep(5)
            tokens.write_text(second)
            measured = await here.seconds_to_bind()
            here.kubeconfig.write_bytes(usual)
    finally:
        here.kubeconfig.write_bytes(usual)
    return measured


async def _token(here: Cluster, secret: str) -> str:
    """A token that is valid as long as *secret* exists."""
    made = await here.call(b"POST", _SECRETS, {"metadata": {"name": secret}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": made["metadata"]["uid"]}
    request = {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
    answer = await here.call(b"POST", _ACCOUNT + b"/scheduler/token", request)
    return str(answer["status"]["token"])


async def replace_client_authority(here: Cluster) -> float:
    """The API server trusts another authority for clients; seconds later the scheduler has a certificate of it."""
    certificate, key = here.folder / "client.pem", here.folder / "client.key"

    def write_client(authority: trustme.CA) -> None:
        leaf = authority.issue_cert("scheduler.test", common_name="admin", organization_name="system:masters")
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)

    write_client(here.client_authority)
    usual = here.kubeconfig.read_bytes()
    server = f"https://127.0.0.1:{here.relay.port}"
    write_kubeconfig(
        here.kubeconfig, server=server, authority=here.authority, token="", client_certificate=(certificate, key)
    )
    try:
        async with here.changed_scheduler():
            authority = trustme.CA()
            authority.cert_pem.write_to_path(here.client_authority_file)
            await restart_api_server(here, number=signal.SIGTERM)
            await trio.sleep(3)
            write_client(authority)
            here.client_authority = authority
            measured = await here.seconds_to_bind()
            here.kubeconfig.write_bytes(usual)
    finally:
        here.kubeconfig.write_bytes(usual)
    return measured
