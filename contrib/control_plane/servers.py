"""How etcd and kube-apiserver are started from the folder that ``KUBEBUILDER_ASSETS`` names."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx
import trustme
from attrs import frozen

from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError

ADMIN_TOKEN, SCHEDULER_TOKEN = "admin-token", "scheduler-token"
TOKENS = f'{ADMIN_TOKEN},admin,1,"system:masters"\n{SCHEDULER_TOKEN},system:kube-scheduler,2,""\n'


class AssetsMissing(Exception):
    """There is nothing to compare with."""


@frozen
class Assets:
    """The folder with the executables."""

    folder: Path

    @property
    def etcd(self) -> Path:
        """The executable of etcd."""
        return self.folder / "etcd"

    @property
    def kube_apiserver(self) -> Path:
        """The executable of the API server."""
        return self.folder / "kube-apiserver"

    @property
    def kube_scheduler(self) -> Path:
        """The executable of the scheduler to compare with."""
        return self.folder / "kube-scheduler"


def find_assets() -> Assets:
    """The folder that ``KUBEBUILDER_ASSETS`` names.

    Raises:
        AssetsMissing: it names none, or an executable is not there; says which.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not named:
        raise AssetsMissing("KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler")
    assets = Assets(Path(named).resolve())
    needed = (assets.etcd, assets.kube_apiserver, assets.kube_scheduler)
    missing = [path.name for path in needed if not os.access(path, os.X_OK)]
    if missing:
        raise AssetsMissing(f"KUBEBUILDER_ASSETS ({named}) has no {' and no '.join(missing)}")
    return assets


@frozen
class ServerFiles:
    """The certificates and tokens of the API server, in one folder."""

    folder: Path

    @classmethod
    def write(cls, folder: Path) -> ServerFiles:
        """Write new ones into *folder*."""
        files, authority = cls(folder), trustme.CA()
        leaf = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(files.authority)
        leaf.cert_chain_pems[0].write_to_path(files.certificate)
        leaf.private_key_pem.write_to_path(files.key)
        files.tokens.write_text(TOKENS)
        return files

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed the server's."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.folder / "serving.pem"

    @property
    def key(self) -> Path:
        """Its private key, which also signs tokens of service accounts."""
        return self.folder / "serving.key"

    @property
    def tokens(self) -> Path:
        """The bearer tokens that are accepted."""
        return self.folder / "tokens.csv"


def etcd_command(binary: Path, data_folder: Path, url: str) -> list[str]:
    """An etcd of one member, without waiting for the disk."""
    peers = f"http://127.0.0.1:{free_port()}"
    return [
        str(binary),
        f"--data-dir={data_folder}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
    ]


def api_server_command(
    binary: Path, files: ServerFiles, port: int, etcd_url: str, *, all_kinds: bool = False
) -> list[str]:
    """An API server with RBAC and without the controllers that a cluster has; see `optional_kinds_flags`."""
    return [
        str(binary),
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={files.folder}",
        f"--tls-cert-file={files.certificate}",
        f"--tls-private-key-file={files.key}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        # No controller issues tokens for pods here, and none would ever report that a node has become ready.
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.key}",
        f"--service-account-signing-key-file={files.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        *optional_kinds_flags(minor_version(binary), all_kinds=all_kinds),
    ]


def minor_version(binary: Path) -> int | None:
    """The minor version of Kubernetes that an executable says it has; None if it says none."""
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    found = re.match(r"Kubernetes v1\.(\d+)\.", said)
    return None if found is None else int(found[1])


_DEVICES: Final[Mapping[int, tuple[str, str]]] = {
    31: ("DynamicResourceAllocation", "resource.k8s.io/v1alpha3"),
    32: ("DynamicResourceAllocation", "resource.k8s.io/v1beta1"),
    33: ("DynamicResourceAllocation", "resource.k8s.io/v1beta1 resource.k8s.io/v1beta2"),
}
OLDEST_WITH_DEVICES: Final = min(_DEVICES)
_OTHER_KINDS: Final[Mapping[int, tuple[str, str]]] = {
    33: ("DRADeviceTaints", "resource.k8s.io/v1alpha3"),
    34: ("DRADeviceTaints", "resource.k8s.io/v1alpha3"),
    35: ("DRADeviceTaints GenericWorkload", "resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha1"),
    36: ("DRADeviceTaintRules GenericWorkload", "resource.k8s.io/v1beta2 scheduling.k8s.io/v1alpha2"),
    37: ("GenericWorkload", "scheduling.k8s.io/v1beta1"),
    38: ("GenericWorkload", "scheduling.k8s.io/v1beta1"),
}
"""Minor version → feature gates, and versions of groups: device taint rules and pod groups."""


def optional_kinds_flags(minor: int | None, *, all_kinds: bool) -> list[str]:
    """What makes an API server of 1.31 to 1.33 serve devices; later ones do by default.

    Args:
        minor: the minor version of the API server, as far as it is known.
        all_kinds: also what makes it serve device taint rules, workloads and pod groups, as far as it has them.
    """
    tables = (_DEVICES, _OTHER_KINDS) if all_kinds else (_DEVICES,)
    found = [table[minor] for table in tables if minor is not None and minor in table]
    if not found:
        return []
    gates, versions = (",".join(f"{one}=true" for texts in found for one in texts[column].split()) for column in (0, 1))
    return [f"--feature-gates={gates}", f"--runtime-config={versions}"]


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


async def is_healthy(url: str) -> bool:
    """Whether the etcd at *url* can be used."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            return (await client.get(f"{url}/health")).status_code == 200
        except httpx.TransportError:
            return False


async def is_ready(client: KubeClient) -> bool:
    """Whether an API server can be used."""
    try:
        if (await client.request(b"GET", b"/readyz")).status != 200:
            return False
        return (await client.request(b"GET", b"/api/v1/namespaces/default")).status == 200
    except KubeClientError:
        return False
