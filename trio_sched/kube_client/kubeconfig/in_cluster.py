"""The connection settings of a pod: its service account."""

import logging
from collections.abc import Mapping
from pathlib import Path

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import describe_open_error, describe_os_error
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings

log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster_settings(environ: Mapping[str, str], *, service_account: Path = SERVICE_ACCOUNT) -> ConnectionSettings:
    """The API server of the cluster that this pod runs in; the token is read again from time to time.

    Args:
        environ: the process environment, where the kubelet put the server's address.
        service_account: the directory where it put token and certificate authority.

    Raises:
        KubeconfigError: this process does not run in a pod, or its token cannot be read.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token_file, ca_file = service_account / "token", service_account / "ca.crt"
    try:
        with token_file.open("rb"):
            pass
    except OSError as problem:
        raise KubeconfigError(describe_open_error(str(token_file), problem)) from problem
    try:
        ca_file.read_bytes()
    except OSError as problem:
        log.error("expected to load root CA config from %s, but got err: %s", ca_file, describe_os_error(problem))
        ca = ""
    else:
        ca = str(ca_file)
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ConnectionSettings(server=f"https://{address}", tls=TlsSettings(ca_file=ca), token_file=str(token_file))
