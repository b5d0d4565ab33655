"""Client certificates and keys in PEM, and how an SSL context gets them without a file on any disk."""

import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from typing import Final, NamedTuple

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import describe_os_error

_MARK: Final = re.compile(rb"-----(BEGIN|END) ([^\r\n-]+)-----")
_CERTIFICATE: Final = "CERTIFICATE"
_KEY: Final = "PRIVATE KEY"


class PemBlock(NamedTuple):
    """One block of a PEM text."""

    type: str
    text: bytes


def pem_blocks(text: bytes) -> list[PemBlock]:
    """The blocks of a PEM text; what stands between them is a comment."""
    blocks: list[PemBlock] = []
    begin: re.Match[bytes] | None = None
    for mark in _MARK.finditer(text):
        if mark[1] == b"BEGIN":
            begin = mark
        elif begin is not None and begin[2] == mark[2]:
            blocks.append(PemBlock(mark[2].decode("ascii", "replace"), text[begin.start() : mark.end()] + b"\n"))
            begin = None
    return blocks


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have *context* show *certificate* with the private *key*, both PEM.

    Raises:
        KubeconfigError: they cannot be used; with the text of Go's ``tls.X509KeyPair`` where it has one.
    """
    pair = _certificates(certificate) + _key(key)
    with _as_file(pair) as path:
        try:
            context.load_cert_chain(path, password=_refuse_encrypted)
        except ssl.SSLError as problem:
            if problem.reason == "KEY_VALUES_MISMATCH":
                raise KubeconfigError("tls: private key does not match public key") from problem
            text = problem.reason or "they are malformed"
            raise KubeconfigError(f"tls: failed to load the client certificate and key: {text}") from problem


def _refuse_encrypted() -> str:
    """Called for the password of an encrypted key; without it OpenSSL would ask for one on the terminal, and wait."""
    raise KubeconfigError("tls: failed to parse private key: it is encrypted; use a key without a password")


def _certificates(text: bytes) -> bytes:
    blocks = pem_blocks(text)
    found = b"".join(block.text for block in blocks if block.type == _CERTIFICATE)
    if found:
        return found
    if not blocks:
        raise KubeconfigError("tls: failed to find any PEM data in certificate input")
    if len(blocks) == 1 and blocks[0].type.endswith(_KEY):
        raise KubeconfigError(
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    raise KubeconfigError(
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: {_types(blocks)}"
    )


def _key(text: bytes) -> bytes:
    blocks = pem_blocks(text)
    for block in blocks:
        if block.type == _KEY or block.type.endswith(f" {_KEY}"):
            return block.text
    if not blocks:
        raise KubeconfigError("tls: failed to find any PEM data in key input")
    if len(blocks) == 1 and blocks[0].type == _CERTIFICATE:
        raise KubeconfigError("tls: found a certificate rather than a key in the PEM for the private key")
    raise KubeconfigError(
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of '
        f"the following types: {_types(blocks)}"
    )


def _types(blocks: list[PemBlock]) -> str:
    return f"[{' '.join(block.type for block in blocks)}]"


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path under which OpenSSL can read *content*, because Python's binding loads certificates from paths only.

    On Linux that is a file in memory. Elsewhere it is a temporary file with mode 0600, which is deleted at once.

    Raises:
        KubeconfigError: neither can be made.
    """
    with contextlib.ExitStack() as resources:
        try:
            path = _memory_file(content, resources)
        except (OSError, AttributeError):  # not Linux, no /proc, or forbidden by a seccomp profile
            try:
                path = _temporary_file(content, resources)
            except OSError as problem:
                raise KubeconfigError(
                    "the client certificate cannot be loaded: there are neither files in memory (memfd_create, /proc) "
                    f"nor temporary files ({describe_os_error(problem)}); set TMPDIR to a writable directory"
                ) from problem
        yield path


def _memory_file(content: bytes, resources: contextlib.ExitStack) -> str:
    descriptor = os.memfd_create("client-certificate")
    resources.callback(os.close, descriptor)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    path = f"/proc/self/fd/{descriptor}"
    with open(path, "rb"):  # fails here if there is no /proc
        return path


def _temporary_file(content: bytes, resources: contextlib.ExitStack) -> str:
    file = tempfile.NamedTemporaryFile(suffix=".pem")  # noqa: SIM115  the caller's resources close it
    resources.enter_context(file)
    file.write(content)
    file.flush()
    return file.name
