"""Which API server commands simulate, and which kube-scheduler they act as, as options and a running cluster say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from attrs import frozen

from trio_sched.cli.startup.emulated_version import version_for, version_of_server
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulation.simulated_run import say_on_stderr
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION, UnknownKubernetesVersion, minor_version

_WITH_WORKLOADS: Final = "1.35"
"""Its workloads contain their pod groups; no other version has such, nor pods that name them."""

F = TypeVar("F", bound=Callable[..., Any])


def _read_version(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    try:
        if text is not None:
            minor_version(text)
    except UnknownKubernetesVersion as error:
        raise click.BadParameter(str(error)) from error
    return text


_OPTIONS: Final = (
    click.option(
        "--kubernetes-version",
        metavar="1.31..1.37",
        callback=_read_version,
        help="The version of the API server: which versions of which kinds it serves. If not given, "
        f"{DEFAULT_VERSION}, or that of a running cluster if it is newer, or 1.35.",
    ),
    click.option(
        "--emulated-version",
        metavar="1.33..1.37",
        default="",
        help="The version of kube-scheduler to schedule as, as for the daemon. If not given, the API server's version "
        f"decides, from {DEFAULT_VERSION} on.",
    ),
)


def version_options(command: F) -> F:
    """Add the options that `Versions.of_options` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@frozen
class Versions:
    """What a command acts as.

    Attributes:
        kubernetes: the version of the API server that is simulated.
        emulated: that of kube-scheduler; empty: the default.
    """

    kubernetes: str
    emulated: str

    @classmethod
    def of_options(
        cls, kubernetes_version: str | None, emulated_version: str, cluster: ConnectionSettings | None
    ) -> Versions:
        """What the options say, and where they say nothing the running *cluster*, which is asked for its version.

        Raises:
            TrioSchedError: the connection to *cluster* cannot be used.
        """
        if kubernetes_version is None and cluster is not None:
            found = version_of_server(cluster)
            if found is None and not emulated_version:
                say_on_stderr(f"Warning: the API server does not say its version; {DEFAULT_VERSION} is assumed")
            kubernetes_version = _WITH_WORKLOADS if found == (1, 35) else version_for(found)
        kubernetes = kubernetes_version or DEFAULT_VERSION
        return cls(kubernetes, emulated_version or version_for((1, minor_version(kubernetes))))

    @property
    def flags(self) -> list[str]:
        """The flags with which the daemon acts so."""
        return [f"--emulated-version={self.emulated}"] if self.emulated else []
