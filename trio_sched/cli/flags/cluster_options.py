"""The options of commands that simulate a cluster: where it is read from, and what is changed of it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from trio_sched.simulation.cluster_files import ClusterFiles

F = TypeVar("F", bound=Callable[..., Any])


class FileName(click.Path):
    """The name of a file or folder; not empty, which would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name.

        Raises:
            click.BadParameter: the name is empty, or not one of a file.
        """
        if not value:
            self.fail("the name of a file is empty", param, ctx)
        return super().convert(value, param, ctx)


def read_patterns(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """What `--reschedule` selects.

    Raises:
        click.BadParameter: a text is no pattern of pods.
    """
    for text in texts:
        namespace, slash, name = text.partition("/")
        if text not in ("all", "pending") and not (namespace and slash and name and "/" not in name):
            what = "is none of all, pending and NAMESPACE/NAME; write for example shop/web-*"
            raise click.BadParameter(f"{text!r} {what}")
    return texts


_FILES: Final = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    type=FileName(path_type=Path),
    help="Manifests in YAML or JSON: a file, a folder, or - for stdin. May be repeated.",
)
_CLUSTER_FILES: Final = click.option(
    "--cluster",
    "files",
    metavar="FILE",
    multiple=True,
    type=FileName(path_type=Path),
    help="The cluster as manifests in YAML or JSON: a file, a folder, or - for stdin. May be repeated.",
)
_SOURCES: Final = (
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="List the cluster of this kubeconfig, read-only, with its rights; see --context.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        help="List the cluster of this context of the kubeconfig; $KUBECONFIG or ~/.kube/config without --kubeconfig.",
    ),
    click.option("--demo", is_flag=True, help="Take a cluster for a first try: a web shop; some pods are pending."),
    click.option("--lenient", is_flag=True, help="Leave out fields that no API server knows, with a warning."),
    click.option("--strict", is_flag=True, help="Refuse custom resources without their CustomResourceDefinition."),
)
"""Where a cluster is read from, besides files."""
_CHANGES: Final = (
    click.option(
        "--reschedule",
        "patterns",
        metavar="all|pending|NAMESPACE/NAME",
        multiple=True,
        callback=read_patterns,
        help="Place these pods again, wherever they are; NAME may have *, as in shop/web-*. May be repeated.",
    ),
    click.option(
        "--as-scheduler",
        "taken_over",
        metavar="NAME|all",
        multiple=True,
        help="Schedule the pods of the scheduler NAME, too, with the first profile. May be repeated.",
    ),
)


_NAMES: Final = ("files", "kubeconfig", "context", "demo", "lenient", "strict", "patterns", "taken_over")


def cluster_options(command: F) -> F:
    """Add the options that `cluster_of` takes: where a cluster is read from, and what is changed of it."""
    for option in reversed((_FILES, *_SOURCES, *_CHANGES)):
        command = option(command)
    return command


def file_options(command: F) -> F:
    """Add the options that `files_of` takes: the cluster is read from files, or is the demo."""
    for option in reversed((_FILES, *_SOURCES[2:])):
        command = option(command)
    return command


def source_options(command: F) -> F:
    """Add the options that `cluster_of` takes without those that change the cluster."""
    for option in reversed((_FILES, *_SOURCES)):
        command = option(command)
    return command


def whole_cluster_options(command: F) -> F:
    """Add the options that `cluster_of` takes, for commands whose ``-f`` names something else."""
    for option in reversed((_CLUSTER_FILES, *_SOURCES, *_CHANGES[1:])):
        command = option(command)
    return command


def files_of(options: dict[str, Any]) -> ClusterFiles | None:
    """The cluster that options of `file_options` name, which are taken out of *options*; None if they name none.

    Raises:
        click.UsageError: standard input is to be read, and is closed.
    """
    given = {name: options.pop(name) for name in ("files", "demo", "lenient", "strict")}
    return cluster_of({**given, "kubeconfig": None, "context": None}) if given["files"] or given["demo"] else None


def cluster_of(options: dict[str, Any], *, current_context: bool = False) -> ClusterFiles:
    """The cluster that *options* name, which are taken out of it.

    Args:
        options: of `cluster_options` or `source_options`.
        current_context: whether options that name none mean the cluster that kubectl would take.

    Raises:
        click.UsageError: they name none, or standard input is to be read, and is closed.
        KubeconfigError: the kubeconfig is unusable.
    """
    given = {name: options.pop(name) for name in _NAMES if name in options}
    kubeconfig, context = given.pop("kubeconfig"), given.pop("context")
    live = None
    names_none = kubeconfig is None and context is None and not given["files"] and not given["demo"]
    if kubeconfig is not None or context is not None or (names_none and current_context):
        from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings
        from trio_sched.simulation.live.live_cluster import LiveCluster

        live = LiveCluster(user_settings(kubeconfig or "", context or "", os.environ))
    if live is None and not given["files"] and not given["demo"]:
        raise click.UsageError(
            "there is no cluster to simulate; give -f FILE, --context NAME for one of your kubeconfig, or --demo"
        )
    if sys.stdin is None and Path("-") in given["files"]:
        raise click.UsageError("there is no standard input to read '-' from; it is closed")
    return ClusterFiles(live=live, **given)
