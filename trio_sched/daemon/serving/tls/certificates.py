"""Which certificate a connection gets; files are read again when they change."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field
from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID
from OpenSSL import SSL

from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving.limits import RELOAD_SECONDS
from trio_sched.daemon.serving.tls.certificate_text import certificate_detail
from trio_sched.daemon.serving.tls.self_signed import self_signed, write_pair
from trio_sched.daemon.serving.tls.tls_context import build_context
from trio_sched.daemon.serving.tls.tls_names import INSECURE_SUITES
from trio_sched.daemon.serving_settings import CertificateFiles, ServingSettings
from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import read_file
from trio_sched.verbosity import V2

log = logging.getLogger(__name__)

_PAIR_NAME: Final = "kube-scheduler"


@define(eq=False)
class _Pair:
    """A certificate and its key, with the context made of them."""

    files: CertificateFiles | None
    content: tuple[bytes, bytes]
    context: SSL.Context
    names: tuple[str, ...] = ()


@define(eq=False)
class ServingCertificates:
    """The contexts of all certificates: the default one, and those for some domains."""

    settings: ServingSettings
    _default: _Pair | None = field(init=False, default=None)
    _loading: threading.Lock = field(init=False, factory=threading.Lock)
    _by_domain: list[_Pair] = field(init=False, factory=list)

    def load(self) -> None:
        """Read or make all certificates, once; any thread may call it.

        Raises:
            ServingError: one cannot be read, written or used.
        """
        with self._loading:
            if self._default is None:
                self._load()

    def _load(self) -> None:
        tls = self.settings.tls
        for name in tls.cipher_suites:
            if name in INSECURE_SUITES:
                log.warning("Use of insecure cipher '%s' detected.", name)
        if not self.settings.http2:
            log.info("Forcing use of http/1.1 only")
        default = self._load_default()
        try:
            self._by_domain = [self._from_files(files) for files in tls.sni]
        except ServingError as error:
            raise ServingError(f"failed to load SNI cert and key: {error}") from error
        _log_loaded("Loaded serving cert", default)
        for index, pair in reversed(list(enumerate(self._by_domain))):
            _log_loaded("Loaded SNI cert", pair, index=index)
        self._default = default

    @property
    def _loaded(self) -> _Pair:
        assert self._default is not None, "load comes first"
        return self._default

    @property
    def context(self) -> SSL.Context:
        """For the next connection; it chooses another one when the client has named its domain."""
        return self._loaded.context

    def context_for_http1(self) -> SSL.Context:
        """Another context with the default certificate, which offers no HTTP/2; any thread may call it.

        Raises:
            ServingError: the certificate cannot be read, written or used.
        """
        self.load()
        return build_context(self.settings.tls, *self._loaded.content, http2=False)

    async def follow_files(self) -> None:
        """Read the files again from time to time; a pair that cannot be used leaves the one before. Never returns."""
        while True:
            await trio.sleep(RELOAD_SECONDS)
            for pair in (self._loaded, *self._by_domain):
                if pair.files is None:
                    continue
                reload = partial(self._reload, pair, pair.files)
                if await trio.to_thread.run_sync(reload, abandon_on_cancel=True):
                    _log_loaded("Loaded serving cert" if pair is self._default else "Loaded SNI cert", pair)

    def _reload(self, pair: _Pair, files: CertificateFiles) -> bool:
        """Read *files* again; returns whether that is another pair."""
        try:
            content = _read(files)
            if content == pair.content:
                return False
            fresh = self._pair(files, content)
        except ServingError as error:
            log.error("the serving certificate is not replaced, the former one stays: %s", error)
            return False
        pair.content, pair.context, pair.names = fresh.content, fresh.context, fresh.names
        return True

    def _load_default(self) -> _Pair:
        tls = self.settings.tls
        if tls.files is not None:
            return self._from_files(tls.files)
        if not tls.directory:
            pair = self_signed(self.settings.bind_address)
            log.info("Generated self-signed cert in-memory")
            return self._pair(None, pair)
        folder = Path(tls.directory)
        certificate, key = folder / f"{_PAIR_NAME}.crt", folder / f"{_PAIR_NAME}.key"
        present = [file for file in (certificate, key) if file.exists()]
        if len(present) == 1:
            missing = key if present == [certificate] else certificate
            raise ServingError(f"error reading {missing}, certificate and key must be supplied as a pair")
        if not present:
            try:
                write_pair(certificate, key, self_signed(self.settings.bind_address))
            except OSError as error:
                raise ServingError(f"open {certificate}: {(error.strerror or str(error)).lower()}") from error
            log.info("Generated self-signed cert (%s, %s)", certificate, key)
        return self._from_files(CertificateFiles(certificate=str(certificate), key=str(key)))

    def _from_files(self, files: CertificateFiles) -> _Pair:
        return self._pair(files, _read(files))

    def _pair(self, files: CertificateFiles | None, content: tuple[bytes, bytes]) -> _Pair:
        shown = "" if files is None else files.certificate
        context = build_context(self.settings.tls, *content, http2=self.settings.http2, file=shown)
        context.set_tlsext_servername_callback(self._choose)
        names = files.names if files is not None and files.names else _names_of(content[0])
        return _Pair(files, content, context, tuple(name.lower() for name in names))

    def _choose(self, connection: SSL.Connection) -> None:
        asked = (connection.get_servername() or b"").decode("ascii", "replace").lower().rstrip(".")
        if not asked:
            return
        wildcard = "*." + asked.partition(".")[2]
        for wanted in (asked, wildcard):
            for pair in self._by_domain:
                if wanted in pair.names:
                    connection.set_context(pair.context)
                    return


def _log_loaded(message: str, pair: _Pair, **fields: int) -> None:
    if not log.isEnabledFor(V2):
        return
    files, kind = pair.files, "serving-cert" if message == "Loaded serving cert" else "sni-serving-cert"
    name = "Generated self signed cert" if files is None else f"{kind}::{files.certificate}::{files.key}"
    detail = certificate_detail(x509.load_pem_x509_certificate(pair.content[0]), datetime.now(UTC))
    log.log(V2, "%s", message, extra={**fields, "certName": name, "certDetail": detail})


def _read(files: CertificateFiles) -> tuple[bytes, bytes]:
    try:
        return read_file(files.certificate), read_file(files.key)
    except KubeconfigError as error:
        raise ServingError(str(error)) from error


def _names_of(certificate: bytes) -> tuple[str, ...]:
    own = x509.load_pem_x509_certificate(certificate)
    try:
        extension = own.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except (x509.ExtensionNotFound, ValueError):
        return tuple(str(name.value) for name in own.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    assert isinstance(extension, x509.SubjectAlternativeName)
    return tuple(extension.get_values_for_type(x509.DNSName))
