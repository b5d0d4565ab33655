"""Credentials of an exec plugin, a program: run again when they expire, or when a 401 has refused them."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import trio
from attrs import define, field, frozen

from trio_sched.documents.deep_json import MAX_DEPTH, depth_of
from trio_sched.go.text import printable
from trio_sched.kube_client.credentials.token_file import header_value_problem
from trio_sched.kube_client.errors import CredentialsError
from trio_sched.kube_client.settings import ExecSettings
from trio_sched.open_files import restore_open_files_limit

log = logging.getLogger(__name__)

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
HINT_LIMIT = 10
HINT_INTERVAL_SECONDS = 3600.0
MAX_OUTPUT_BYTES = 1024 * 1024
"""The most that the program may print: a token, a certificate and a key have some kilobytes."""
FIRST_WARNING_SECONDS = 10.0
MAX_PAUSE_SECONDS = 600.0
TERMINATION_SECONDS = 1.0
"""How long a program that is no longer needed may take to end."""


@frozen(kw_only=True)
class ExecCredential:
    """The credentials that the program returned: a token, a client certificate with its key, or both."""

    token: str = field(default="", repr=False)
    client_certificate: bytes = b""
    client_key: bytes = field(default=b"", repr=False)
    expires_at: float | None = None
    """Unix seconds; None means never."""


@define(eq=False)
class ExecPlugin:
    """Runs the program when its last credential has expired or was refused, once for all waiting requests."""

    settings: ExecSettings
    _credential: ExecCredential | None = field(default=None, init=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False)
    _hints_given: int = field(default=0, init=False)
    _last_hint: float = field(default=-HINT_INTERVAL_SECONDS, init=False)

    def cached(self) -> ExecCredential | None:
        """The last credential if it has not expired."""
        credential = self._credential
        if credential is None or (credential.expires_at is not None and time.time() >= credential.expires_at):
            return None
        return credential

    async def credential(self) -> ExecCredential:
        """A credential that has not expired; runs the program if need be.

        Raises:
            CredentialsError: the program is missing, failed, or returned something else.
        """
        async with self._lock:
            cached = self.cached()
            if cached is None:
                cached = self._credential = await self._run()
            return cached

    def forget(self, unusable: ExecCredential) -> None:
        """Forget *unusable*, so that the next request runs the program again."""
        if self._credential is unusable:
            self._credential = None

    async def refused(self, used: ExecCredential) -> ExecCredential:
        """Handle the 401 to *used*: run the program again, unless another request already did."""
        async with self._lock:
            if self._credential is used or self._credential is None:
                self._credential = await self._run()
            return self._credential

    async def _run(self) -> ExecCredential:
        settings = self.settings
        interactive = self._interactive()
        environment = {**os.environ, **dict(settings.env), "KUBERNETES_EXEC_INFO": exec_info(settings, interactive)}
        try:
            exit_code, output = await _run_process(settings, environment, interactive=interactive)
        except FileNotFoundError as problem:
            text = f"exec: executable {settings.command} not found{self._hint()}"
            raise CredentialsError(f"getting credentials: {text}") from problem
        except OSError as problem:
            command = printable(settings.command)
            raise CredentialsError(f"getting credentials: exec: {command}: {problem.strerror}") from problem
        except ValueError as problem:  # a NUL, or an = in the name of a variable; the text of the error names neither
            command = printable(settings.command)
            raise CredentialsError(
                f"getting credentials: exec: {command}: command, args or env: {problem}"
            ) from problem
        if exit_code != 0:
            text = f"exec: executable {settings.command} failed with exit code {exit_code}{self._hint()}"
            raise CredentialsError(f"getting credentials: {text}")
        return parse_credential(output, api_version=settings.api_version)

    def _interactive(self) -> bool:
        mode = self.settings.interactive_mode
        has_terminal = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise CredentialsError(
                "getting credentials: exec plugin cannot support interactive mode: standard input is not a terminal"
            )
        return has_terminal

    def _hint(self) -> str:
        now = trio.current_time()
        due = now - self._last_hint >= HINT_INTERVAL_SECONDS and self._hints_given < HINT_LIMIT
        if not (due and self.settings.install_hint):
            return ""
        self._hints_given += 1
        self._last_hint = now
        return f"\n\n{self.settings.install_hint}"


async def _run_process(
    settings: ExecSettings, environment: Mapping[str, str], *, interactive: bool
) -> tuple[int, bytes]:
    """Run the program; returns its exit code and output, and warns while it takes long: requests wait for it.

    Raises:
        CredentialsError: it prints too much.
        OSError: it cannot be started.
        ValueError: its command, arguments or environment are no text for a process.
    """
    process = await trio.lowlevel.open_process(
        [settings.command, *settings.args],
        env=environment,
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    restore_open_files_limit(process.pid)
    failure: CredentialsError | None = None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_warn_while_running, settings.command)
            try:
                output = await _output_of(process, settings.command)
                exit_code = await process.wait()
            except CredentialsError as problem:  # the nursery is an implementation detail: no group around the error
                failure = problem
            nursery.cancel_scope.cancel()
    finally:
        await _end(process)
    if failure is not None:
        raise failure
    return exit_code, output


async def _output_of(process: trio.Process, command: str) -> bytes:
    assert process.stdout is not None
    output = bytearray()
    while piece := await process.stdout.receive_some():
        output += piece
        if len(output) > MAX_OUTPUT_BYTES:
            limit = f"printed more than {MAX_OUTPUT_BYTES} bytes"
            raise CredentialsError(f"getting credentials: exec: executable {printable(command)} {limit}")
    return bytes(output)


async def _warn_while_running(command: str) -> None:
    began, pause = trio.current_time(), FIRST_WARNING_SECONDS
    while True:
        await trio.sleep(pause)
        seconds = trio.current_time() - began
        log.warning(
            "getting credentials: exec: %s runs since %.0f s; requests wait for it", printable(command), seconds
        )
        pause = min(2 * pause, MAX_PAUSE_SECONDS)


async def _end(process: trio.Process) -> None:
    """End the program if it still runs: with SIGKILL if SIGTERM does not do it soon; and close its output."""
    with trio.CancelScope(shield=True):
        if process.returncode is None:
            process.terminate()
            with trio.move_on_after(TERMINATION_SECONDS):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        if process.stdout is not None:
            await process.stdout.aclose()


def exec_info(settings: ExecSettings, interactive: bool) -> str:
    """The text of ``KUBERNETES_EXEC_INFO``."""
    spec: dict[str, Any] = {"interactive": interactive}
    if settings.cluster_info is not None:
        spec = {"cluster": settings.cluster_info, **spec}
    info = {"kind": "ExecCredential", "apiVersion": settings.api_version, "spec": spec}
    return json.dumps(info, separators=(",", ":")) + "\n"


def parse_credential(output: bytes, *, api_version: str) -> ExecCredential:
    """The credential in *output*, which must be of *api_version*.

    Raises:
        CredentialsError: it is not an ExecCredential, or incomplete.
    """
    try:
        if depth_of(output) > MAX_DEPTH:
            raise RecursionError  # newer Pythons take more than Go
        document = json.loads(output, parse_int=float)  # int() has a limit, and none of the fields is a number
    except RecursionError as problem:
        raise CredentialsError("getting credentials: decoding stdout: exceeded max depth") from problem
    except UnicodeDecodeError:  # without it as the cause: its text contains bytes of the output
        raise CredentialsError("getting credentials: decoding stdout: it is not UTF-8 text") from None
    except ValueError as problem:
        raise CredentialsError(f"getting credentials: decoding stdout: {problem}") from problem
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise CredentialsError("getting credentials: decoding stdout: expected an object of kind ExecCredential")
    if (given := _text(document, "apiVersion")) != api_version:
        raise CredentialsError(
            f"getting credentials: exec plugin is configured to use API version {api_version}, "
            f"plugin returned version {printable(given)}"
        )
    status = document.get("status")
    if not isinstance(status, dict):
        raise CredentialsError("getting credentials: exec plugin didn't return a status field")
    token = _text(status, "token", parent="status.")
    if unusable := header_value_problem(token):
        raise CredentialsError(f"getting credentials: decoding stdout: status.token {unusable}")
    certificate, key = (
        _text(status, "clientCertificateData", parent="status."),
        _text(status, "clientKeyData", parent="status."),
    )
    if not (token or certificate or key):
        raise CredentialsError("getting credentials: exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise CredentialsError("getting credentials: exec plugin returned only certificate or key, not both")
    return ExecCredential(
        token=token,
        client_certificate=certificate.encode(),
        client_key=key.encode(),
        expires_at=_expiry(_text(status, "expirationTimestamp", parent="status.")),
    )


def _text(fields: dict[str, Any], key: str, *, parent: str = "") -> str:
    value = fields.get(key) or ""
    if not isinstance(value, str):
        kind = {dict: "an object", list: "an array", bool: "a truth value"}.get(type(value), "a number")
        raise CredentialsError(f"getting credentials: decoding stdout: {parent}{key}: expected text, got {kind}")
    try:
        value.encode()
    except UnicodeEncodeError:  # without it as the cause: its text contains a part of the credential
        raise CredentialsError(f"getting credentials: decoding stdout: {parent}{key}: it is not UTF-8 text") from None
    return value


def _expiry(timestamp: str) -> float | None:
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        text = "getting credentials: decoding stdout: expirationTimestamp: it is no time in the format of RFC 3339"
        raise CredentialsError(text) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
