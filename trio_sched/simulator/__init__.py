"""Simulates the API server, and the kubelets and controllers of a cluster.

Everything lives in memory and time comes from a clock that is passed in, so a test may run hours of cluster life in
milliseconds. ``ApiServer`` answers requests; ``InProcessTransport`` carries them without a socket, ``serve`` with one;
``run_kubelets`` runs bound pods, ``Controllers`` binds volumes, publishes devices, makes resource claims and so on;
``load_manifests`` reads clusters from files. ``PretendExtender`` is a webhook that the scheduler calls.

This package shares no code with ``kube_client``, so that one misreading of the API cannot be in both.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trio_sched.simulator.controllers.manager import Controllers
from trio_sched.simulator.controllers.volumes.volumes import VolumeController, VolumePace
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.endpoints.serve import serve
from trio_sched.simulator.kubelets.kubelet import KubeletPace, run_kubelets
from trio_sched.simulator.manifests.manifests import ManifestError
from trio_sched.simulator.manifests.scenario import load_manifests, populate
from trio_sched.simulator.registry.bootstrap_roles import allows_by_bootstrap_roles
from trio_sched.simulator.storage.clock import EPOCH_OF_TESTS, jumping_clock, trio_clock, wall_clock

if TYPE_CHECKING:
    from trio_sched.simulator.endpoints.in_process import InProcessTransport
    from trio_sched.simulator.pretend_extender import (
        Asked,
        ExtenderTransport,
        PretendExtender,
        leaving,
        scoring,
        serve_extender,
    )

__all__ = [
    "EPOCH_OF_TESTS",
    "ApiServer",
    "Asked",
    "Controllers",
    "ExtenderTransport",
    "InProcessTransport",
    "KubeletPace",
    "ManifestError",
    "PretendExtender",
    "VolumeController",
    "VolumePace",
    "allows_by_bootstrap_roles",
    "jumping_clock",
    "leaving",
    "load_manifests",
    "populate",
    "run_kubelets",
    "scoring",
    "serve",
    "serve_extender",
    "trio_clock",
    "wall_clock",
]

_OVER_HTTPX = {
    "InProcessTransport": "endpoints.in_process",
    **dict.fromkeys(
        ("Asked", "ExtenderTransport", "PretendExtender", "leaving", "scoring", "serve_extender"), "pretend_extender"
    ),
}
"""Name → module."""


def __getattr__(name: str) -> Any:
    """What needs httpx is imported when it is first used: that takes long, and simulations do without it."""
    if name not in _OVER_HTTPX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OVER_HTTPX[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
