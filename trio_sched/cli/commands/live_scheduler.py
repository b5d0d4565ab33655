"""How commands reach the live page of a running trio-sched: their options, the connection, what refusals mean."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from trio_sched.cli.commands.running_scheduler import scheduler_connection
from trio_sched.cli.flags.cluster_options import FileName
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable, shortened
from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings
from trio_sched.kube_client.settings import ConnectionSettings

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--from",
        "scheduler_url",
        metavar="URL",
        required=True,
        help="The running trio-sched at https://HOST:PORT; with kubectl port-forward that is https://127.0.0.1:10259.",
    ),
    click.option(
        "--from-ca",
        type=FileName(path_type=Path),
        help="The certificate authorities of that trio-sched; those of the system if not given.",
    ),
    click.option("--from-insecure", is_flag=True, help="Do not check its certificate; it is sent your credentials."),
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


def connection_of(options: dict[str, Any]) -> ConnectionSettings:
    """How the scheduler that *options* name is reached, with the user's own credentials.

    Raises:
        TrioSchedError: the address is none, or the kubeconfig is unusable.
    """
    user = user_settings(options["kubeconfig"], options["context"], os.environ)
    return scheduler_connection(
        options["scheduler_url"], user, ca_file=options["from_ca"], insecure=options["from_insecure"]
    )


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
