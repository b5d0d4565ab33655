"""The authorities whose signatures on client certificates count: from files, and from a ConfigMap of the cluster.

Both are followed: certificate authorities are replaced while the process runs.
"""

from __future__ import annotations

import logging
from functools import partial
from random import Random
from typing import Any, Final

import msgspec
import trio
from attrs import define, evolve, field

from trio_sched.daemon.serving.authentication.client_certificates import Authorities
from trio_sched.daemon.serving.authentication.front_proxy import FrontProxyAuthenticator
from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving.limits import LOG_INTERVAL_SECONDS, LOOKUP_SECONDS, RELOAD_SECONDS
from trio_sched.daemon.serving_settings import AuthenticationSettings, RequestHeaderSettings
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import KubeClientError, KubeconfigError, NotFound
from trio_sched.kube_client.files import read_file
from trio_sched.kube_client.kinds import CONFIG_MAP_KIND
from trio_sched.kube_client.verbs import get
from trio_sched.kube_client.watch import list_and_watch
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.config_map import ConfigMap

log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_KIND: Final = evolve(CONFIG_MAP_KIND, field_selector=f"metadata.name={NAME}")
_CLIENT_CA: Final = "client-ca-file"
_PROXY_CA: Final = "requestheader-client-ca-file"
_MISSING_ROLE: Final = (
    "Unable to get configmap/%s in %s.  Usually fixed by 'kubectl create rolebinding -n %s ROLEBINDING_NAME "
    "--role=extension-apiserver-authentication-reader --serviceaccount=YOUR_NS:YOUR_SA': %s: %s"
)


@define(eq=False, kw_only=True)
class AuthenticationLookup:
    """Keeps the authorities of clients and front proxies up to date."""

    settings: AuthenticationSettings
    clients: Authorities = field(factory=Authorities)
    proxies: FrontProxyAuthenticator = field(factory=lambda: FrontProxyAuthenticator(Authorities()))

    def read_files(self) -> None:
        """Read the files that flags name.

        Raises:
            ServingError: one cannot be read, or contains no certificates.
        """
        if self.settings.request_header_ca_file:
            self.proxies.settings = self.settings.request_header
        for file, authorities, what in self._files():
            try:
                authorities.replace(read_file(file).decode("ascii", "replace"))
            except KubeconfigError as error:
                raise ServingError(f"{what}: {error}") from error
            except ValueError as error:
                raise ServingError(f"{what}: data does not contain any valid certificates", place=file) from error

    async def look_up(self, client: KubeClient | None) -> None:
        """Read the ConfigMap for the first time, if it is needed.

        Raises:
            ServingError: that failed, and is not to be tolerated.
        """
        settings = self.settings
        if settings.skip_lookup or not self._wanted():
            return
        if client is None:
            self._warn_of_missing_client()
            return
        try:
            with trio.fail_after(LOOKUP_SECONDS):
                found = await get(client, CONFIG_MAP_KIND, NAME, namespace=NAMESPACE)
        except NotFound:
            return
        except (KubeClientError, trio.TooSlowError) as error:
            said = f"no response within {LOOKUP_SECONDS:g} s" if isinstance(error, trio.TooSlowError) else str(error)
            if not settings.tolerate_lookup_failure:
                raise ServingError(f"unable to load configmap based request-header-client-ca-file: {said}") from error
            log.warning("Error looking up in-cluster authentication configuration: %s", said)
            log.warning("Continuing without authentication configuration. This may treat all requests as anonymous.")
            log.warning(
                "To require authentication configuration lookup to succeed, "
                "set --authentication-tolerate-lookup-failure=false"
            )
        else:
            self._take(found)

    async def follow(self, client: KubeClient | None, random: Random) -> None:
        """Follow files and ConfigMap; never returns."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow_files)
            if client is not None and not self.settings.skip_lookup and self._wanted():
                on_error = _QuietLog()
                watch = partial(list_and_watch, client, _KIND, self._changed, random=random, namespace=NAMESPACE)
                nursery.start_soon(partial(watch, on_error=on_error))

    def _wanted(self) -> list[str]:
        """The keys of the ConfigMap that no flag takes precedence over."""
        given = ((_CLIENT_CA, self.settings.client_ca_file), (_PROXY_CA, self.settings.request_header_ca_file))
        return [key for key, file in given if not file]

    def _warn_of_missing_client(self) -> None:
        ends = {_CLIENT_CA: "client", _PROXY_CA: "request-header client"}
        for key in self._wanted():
            log.warning(
                "No authentication-kubeconfig provided in order to lookup %s in configmap/%s in %s, "
                "so %s certificate authentication won't work.",
                key,
                NAME,
                NAMESPACE,
                ends[key],
            )

    def _files(self) -> list[tuple[str, Authorities, str]]:
        rows = (
            (self.settings.client_ca_file, self.clients, "unable to load client CA provider"),
            (
                self.settings.request_header_ca_file,
                self.proxies.authorities,
                "unable to create request header authentication config",
            ),
        )
        return [row for row in rows if row[0]]

    async def _follow_files(self) -> None:
        while True:
            await trio.sleep(RELOAD_SECONDS)
            try:
                # A pipe, or a file system that is away, would hold up everything else.
                await trio.to_thread.run_sync(self.read_files, abandon_on_cancel=True)
            except ServingError as error:
                log.error("certificate authorities are not replaced, the former ones stay: %s", error)

    def _changed(self, batch: Listed[ConfigMap] | Changes[ConfigMap]) -> None:
        current = (
            batch.objects if isinstance(batch, Listed) else [one.new for one in batch.changes if one.type != "DELETED"]
        )
        for found in current:
            if found is not None and found.metadata.name == NAME:
                self._take(found)

    def _take(self, found: ConfigMap) -> None:
        """Use what *found* says; a key that cannot be read leaves what was there before."""
        if not self.settings.client_ca_file:
            _replace(self.clients, found, _CLIENT_CA)
        if not self.settings.request_header_ca_file and _replace(self.proxies.authorities, found, _PROXY_CA):
            try:
                self.proxies.settings = _header_settings(found)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                log.error("configmap/%s in %s: the names of headers cannot be read: %s", NAME, NAMESPACE, error)
                self.proxies.authorities.replace("")  # a front proxy whose allowed names are unknown is not believed


def _replace(authorities: Authorities, found: ConfigMap, key: str) -> bool:
    try:
        authorities.replace(found.data.get(key, ""))
    except ValueError as error:
        log.error("configmap/%s in %s: %s contains no certificates: %s", NAME, NAMESPACE, key, error)
        return False
    return True


def _header_settings(found: ConfigMap) -> RequestHeaderSettings:
    def names(key: str) -> tuple[str, ...]:
        text = found.data.get(f"requestheader-{key}", "")
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()

    return RequestHeaderSettings(
        allowed_names=names("allowed-names"),
        username_headers=names("username-headers"),
        uid_headers=names("uid-headers"),
        group_headers=names("group-headers"),
        extra_prefixes=names("extra-headers-prefix"),
    )


@define(eq=False)
class _QuietLog:
    """Logs failures of the watch; not every one of a server that stays away."""

    _logged_at: float = field(init=False, default=float("-inf"))

    def __call__(self, plural: str, error: Any) -> None:
        now = trio.current_time()
        if now - self._logged_at >= 6 * LOG_INTERVAL_SECONDS:
            self._logged_at = now
            log.warning(_MISSING_ROLE, NAME, NAMESPACE, NAMESPACE, plural, error)
