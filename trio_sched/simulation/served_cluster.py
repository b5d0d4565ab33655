"""A simulated cluster that kubectl can look at: at an address, with a kubeconfig."""

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio

from trio_sched.daemon.reload import ReloadRequests
from trio_sched.errors import TrioSchedError, first_leaf
from trio_sched.kube_client.files import describe_os_error
from trio_sched.simulation.simulated_run import Plan, serve_until_signal


class CannotServe(TrioSchedError):
    """The address cannot be listened on."""


def serve_cluster(
    plan: Plan, host: str, port: int, announce: Callable[[str, Path], None], reload: ReloadRequests
) -> None:
    """Keep the cluster of *plan* alive until a signal; the kubeconfig exists as long.

    Args:
        plan: the cluster.
        host: the address to listen on.
        port: 0 lets the system choose.
        announce: is called with the server's URL and the kubeconfig once everything runs.
        reload: what is reloaded when it has changed.

    Raises:
        CannotServe: the address cannot be listened on.
        BaseExceptionGroup: of all other errors.
    """

    def write_kubeconfig(url: str) -> None:
        path.write_text(json.dumps(_kubeconfig(url), indent=2), encoding="utf-8")
        announce(url, path)

    folder = Path(tempfile.mkdtemp(prefix="trio-sched-"))
    path = folder / "kubeconfig"
    refused: OSError | None = None
    try:
        trio.run(partial(serve_until_signal, plan, host, port, write_kubeconfig, reload))
    except* OSError as group:
        refused = first_leaf(group)
    finally:
        shutil.rmtree(folder)
    if refused is not None:
        raise CannotServe(f"cannot serve at {host}:{port}: {describe_os_error(refused)}")


def _kubeconfig(url: str) -> dict[str, Any]:
    """JSON is YAML; it has a token only because kubectl prompts for a password otherwise."""
    name = "trio-sched-simulator"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": "anybody"}}],
    }
