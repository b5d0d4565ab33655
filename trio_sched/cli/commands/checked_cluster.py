"""What ``trio-sched check-config`` says of a running cluster that a configuration is for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import click
import trio
from attrs import frozen

from trio_sched.cli.commands.rbac import load_configuration
from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.startup.emulated_version import flags_for_server
from trio_sched.daemon.cluster_check import ClusterFindings, check_cluster
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.errors import TrioSchedError, leaves
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings
from trio_sched.kube_client.settings import ConnectionSettings

_NAME: Final = "check-config"


@frozen
class CheckedCluster:
    """The cluster that options name.

    Attributes:
        connection: how it is reached.
        user: whose rights are looked at; empty: those of the credentials.
    """

    connection: ConnectionSettings
    user: str

    @classmethod
    def of_options(cls, kubeconfig: str | None, context: str | None, user: str | None) -> CheckedCluster | None:
        """The cluster that the options name; None if they name none.

        Raises:
            click.UsageError: there is a user and no cluster.
            KubeconfigError: the kubeconfig is unusable.
        """
        if kubeconfig is None and context is None:
            if user is not None:
                raise click.UsageError("--as is about the cluster of --context or --kubeconfig")
            return None
        return cls(user_settings(kubeconfig or "", context or "", os.environ), user or "")

    def emulated_version(self) -> str:
        """The version that a daemon emulates there without being told one; empty: the default."""
        return trio.run(self._emulated_version)

    async def _emulated_version(self) -> str:
        async with connect(self.connection, component=_NAME, qps=-1) as client:
            (version, *_) = (await flags_for_server(parse_flags([]), client))["emulated-version"] or ("",)
            return str(version)

    def findings(
        self, path: str, feature_gates: str, emulated_version: str, selection: PluginSelection
    ) -> ClusterFindings | TrioSchedError:
        """What the cluster has of what the configuration at *path* needs, or why that is not known."""
        found: ClusterFindings | TrioSchedError
        try:
            loaded = load_configuration(path, feature_gates, selection, emulated_version)
            found = trio.run(self._findings, loaded)
        except* TrioSchedError as group:  # of several requests that fail for one reason
            found = next(iter(leaves(group)))
        return found

    async def _findings(self, loaded: LoadedProfiles) -> ClusterFindings:
        async with connect(self.connection, component=_NAME, qps=-1) as client:
            return await check_cluster(client, loaded, self.user)


def messages(found: ClusterFindings) -> Iterator[tuple[str, bool]]:
    """What lacks, each with whether it is an error: a right is, a kind that the server does not serve is a warning."""
    for kind in found.kinds:
        if kind.state == "missing":
            yield f"{kind.resource}: the server serves no version that can be read: {kind.cost}. {kind.mend}", False
        elif kind.state == "forbidden":
            yield f"{kind.resource}: may not be watched: {kind.cost}; {kind.mend}", True
    for right in found.lacking:
        yield f"{right.resource}: {', '.join(right.verbs)} is not allowed: {right.cost}; {right.mend}", True


def summary(found: ClusterFindings) -> str:
    """The version of the server, and those of the kinds that have several or are missing, in one line."""
    versions = ", ".join(
        f"{kind.resource} {kind.version or 'not served'}" for kind in found.kinds if kind.version != "v1"
    )
    server = f"Kubernetes {found.server}" if found.server else "a server that does not say its version"
    return f"{server}: {versions or 'every kind is v1'}"


def as_data(found: ClusterFindings) -> dict[str, Any]:
    """For ``--output json``."""
    return {
        "version": found.server or None,
        "kinds": [
            {
                "resource": kind.resource,
                "state": kind.state,
                "version": kind.version or None,
                "cost": kind.cost or None,
                "mend": kind.mend or None,
            }
            for kind in found.kinds
        ],
        "lacking": [
            {"resource": right.resource, "verbs": list(right.verbs), "cost": right.cost, "mend": right.mend}
            for right in found.lacking
        ],
    }
