"""What the live page is of: a running trio-sched, or a cluster; the options, the connection, what refusals mean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from trio_sched.cli.flags.cluster_options import FileName
from trio_sched.cli.live.running_scheduler import scheduler_connection
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.options.version_options import Versions
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable, shortened
from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings
from trio_sched.kube_client.settings import ConnectionSettings

if TYPE_CHECKING:
    from trio_sched.daemon.serving.pages.live.live_pages import LivePages

_is_simulation: Final = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?/?").fullmatch
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--from",
        "scheduler_url",
        metavar="URL",
        help="The running trio-sched at https://HOST:PORT; with kubectl port-forward that is https://127.0.0.1:10259, "
        "and `simulate --serve` on this machine is http://127.0.0.1:PORT. "
        "If not given, the cluster itself is followed, read-only, and shown without what only its scheduler knows.",
    ),
    click.option(
        "--from-ca",
        type=FileName(path_type=Path),
        help="The certificate authorities of that trio-sched; those of the system if not given.",
    ),
    click.option("--from-insecure", is_flag=True, help="Do not check its certificate; it is sent your credentials."),
    click.option(
        "--config",
        type=FileName(path_type=Path),
        help="Without --from: the KubeSchedulerConfiguration whose pods are shown; the defaults if not given.",
    ),
    click.option("--kubeconfig", metavar="FILE", default="", help="Where your credentials are; as for kubectl."),
    click.option("--context", metavar="NAME", default="", help="Whose credentials of the kubeconfig; as for kubectl."),
)


class NotShown(TrioSchedError):
    """What answers is no trio-sched with a live page, or it shows none to whoever asks."""


def scheduler_options(command: F) -> F:
    """Add the options that `connection_of` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def connection_of(options: dict[str, Any]) -> ConnectionSettings | None:
    """How the scheduler that *options* name is reached, with the user's own credentials; None if they name none.

    Raises:
        click.UsageError: the options do not fit together.
        TrioSchedError: the address is none, or the kubeconfig is unusable.
    """
    url = options["scheduler_url"]
    if url is None:
        if options["from_ca"] is not None or options["from_insecure"]:
            raise click.UsageError("--from-ca and --from-insecure are about the trio-sched of --from")
        return None
    if options["config"] is not None:
        raise click.UsageError("--from shows what that trio-sched has; leave out --config")
    if _is_simulation(url):
        return ConnectionSettings(server=url.rstrip("/"))  # `simulate --serve` asks for no credentials, and gets none
    return scheduler_connection(url, _user(options), ca_file=options["from_ca"], insecure=options["from_insecure"])


def followed(
    options: dict[str, Any], selection: PluginSelection | None = None
) -> AbstractAsyncContextManager[LivePages]:
    """The cluster that *options* name, followed, with the installed plugins or those of *selection*.

    Raises:
        TrioSchedError: the kubeconfig or the configuration is unusable.
    """
    from trio_sched.simulation.live_pages.followed_cluster import followed_cluster  # all of a daemon

    selection, user = PluginSelection() if selection is None else selection, _user(options)
    versions = Versions.of_options(None, "", user)
    return followed_cluster(settings_of(options["config"], "", selection, versions.flags), user)


def _user(options: dict[str, Any]) -> ConnectionSettings:
    return user_settings(options["kubeconfig"], options["context"], os.environ)


def refused(server: str, status: int, text: str) -> NotShown:
    """The error that a response with *status* and *text* stands for."""
    match status:
        case 401 | 403:
            why = "; you need the right to get the paths /ui and /ui/* (nonResourceURLs)"
        case 404:
            why = "; is it the address of a trio-sched that serves /ui?"
        case _:
            why = ""
    return NotShown(f"{server} does not show its page: {status} {shortened(printable(text.strip()))}{why}")
