"""One extender: a webhook that takes part in filtering, scoring, binding or preempting. Each verb is one call."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import trio
from attrs import define, field, frozen

from trio_sched.config.schema import Extender as ExtenderConfig
from trio_sched.daemon.extenders.extender_error import ExtenderError
from trio_sched.daemon.extenders.extender_wire import (
    FilterResult,
    InvalidResponse,
    MetaVictims,
    NodeNameToVictims,
    read_bind_error,
    read_filter_result,
    read_priorities,
    read_victims,
    request_about_nodes,
    request_about_victims,
    request_to_bind,
)
from trio_sched.daemon.limits import EXTENDER_LOG_INTERVAL_SECONDS, SLOW_EXTENDER_SECONDS
from trio_sched.go.text import quote
from trio_sched.kube_client.errors import ConnectionFailed, KubeconfigError
from trio_sched.kube_client.json_poster import JsonPoster
from trio_sched.kube_client.server_url import redacted
from trio_sched.kube_client.settings import TlsSettings
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.status import Status, unresolvable, unschedulable

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

SCORE_FACTOR = 10
"""Extenders score up to 10, plugins up to 100."""

_A = TypeVar("_A")


@frozen
class FilteredNodes:
    """The nodes an extender left, in its order, and why it filtered out others."""

    names: tuple[str, ...]
    statuses: Mapping[str, Status]


@define(eq=False)
class Extender:
    """Calls one extender; logs when it is slow or fails."""

    config: ExtenderConfig
    _poster: JsonPoster
    _managed: frozenset[str] = field(init=False)
    _next_log_at: float = field(init=False, default=-math.inf)
    _suppressed: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._managed = frozenset(resource.name for resource in self.config.managed_resources)

    @classmethod
    def from_config(cls, config: ExtenderConfig, transport: httpx.AsyncBaseTransport | None = None) -> Extender:
        """The extender that *config* describes; nothing is sent yet.

        Args:
            config: with its timeout filled in.
            transport: carries the requests instead of connections of its own.

        Raises:
            ExtenderError: its certificates are not usable.
        """
        timeout = config.http_timeout_ns
        try:
            poster = JsonPoster.for_url(
                config.url_prefix,
                tls=tls_settings(config),
                timeout_seconds=timeout / SECOND_NS if timeout > 0 else math.inf,
                transport=transport,
            )
        except KubeconfigError as problem:
            raise ExtenderError(f"couldn't build extenders: {problem}") from problem
        return cls(config, poster)

    @property
    def name(self) -> str:
        """Its URL as the configuration has it, with ``xxxxx`` for a password."""
        return redacted(self.config.url_prefix)

    @property
    def is_ignorable(self) -> bool:
        """Whether pods are scheduled without it if it fails."""
        return self.config.ignorable

    def is_interested(self, pod: Pod) -> bool:
        """Whether *pod* requests a resource that the extender manages; every pod does if it manages none."""
        managed = self._managed
        if not managed:
            return True
        for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
            resources = container.resources
            if resources is not None and not (
                managed.isdisjoint(resources.requests or ()) and managed.isdisjoint(resources.limits or ())
            ):
                return True
        return False

    def close(self) -> None:
        """Close its connections."""
        self._poster.close()

    # --- verbs ------------------------------------------------------------------------------------------------------

    async def filter(self, pod: Pod, nodes: Mapping[str, Node]) -> FilteredNodes:
        """Which of *nodes* are left.

        Raises:
            ExtenderError: it failed.
        """
        verb, names_only = self.config.filter_verb, self.config.node_cache_capable
        if not verb:
            return FilteredNodes(tuple(nodes), {})

        def read(body: bytes) -> FilteredNodes:
            result = read_filter_result(body)
            if result.error:
                raise ExtenderError(result.error)
            return FilteredNodes(self._left(result, nodes), _statuses(result))

        return await self._call(verb, pod, request_about_nodes(pod, nodes, names_only=names_only), read)

    def _left(self, result: FilterResult, nodes: Mapping[str, Node]) -> tuple[str, ...]:
        if self.config.node_cache_capable and result.names is not None:
            for name in result.names:
                if name not in nodes:
                    raise ExtenderError(
                        f"extender {quote(self.name)} claims a filtered node {quote(name)} "
                        "which is not found in the input node list"
                    )
            return result.names
        # Whole nodes are not checked against the request, as in kube-scheduler; unknown ones cannot be chosen anyway.
        return tuple(name for name in result.listed or () if name in nodes)

    async def prioritize(self, pod: Pod, nodes: Mapping[str, Node]) -> dict[str, int]:
        """What it adds to the total scores of *nodes*, with its weight applied.

        Raises:
            ExtenderError: it failed.
        """
        verb, names_only = self.config.prioritize_verb, self.config.node_cache_capable
        priorities = await self._call(
            verb, pod, request_about_nodes(pod, nodes, names_only=names_only), read_priorities
        )
        added: dict[str, int] = {}
        for host, score in priorities:
            added[host] = added.get(host, 0) + score * self.config.weight * SCORE_FACTOR
        return added

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Have it bind *pod*.

        Raises:
            ExtenderError: it failed.
        """

        def read(body: bytes) -> None:
            if error := read_bind_error(body):
                raise ExtenderError(error)

        await self._call(self.config.bind_verb, pod, request_to_bind(pod, node_name), read)

    async def process_preemption(
        self, pod: Pod, victims: NodeNameToVictims, resolve: Callable[[Mapping[str, MetaVictims]], NodeNameToVictims]
    ) -> NodeNameToVictims:
        """Which victims, on which nodes, it wants instead of *victims*; *resolve* finds the pods behind UIDs.

        Raises:
            ExtenderError: it failed, or *resolve* did.
        """
        body = request_about_victims(pod, victims, uids_only=self.config.node_cache_capable)
        return await self._call(self.config.preempt_verb, pod, body, lambda response: resolve(read_victims(response)))

    async def _call(self, verb: str, pod: Pod, body: bytes, read: Callable[[bytes], _A]) -> _A:
        began = trio.current_time()
        url = f"{self._poster.url}/{verb}"
        try:
            try:
                reply = await self._poster.post(verb, body)
            except ConnectionFailed as problem:
                raise ExtenderError(f"Post {quote(url)}: {problem.problem}") from problem
            if reply.status != 200:
                raise ExtenderError(f"failed {verb} with extender at URL {url}, code {reply.status}")
            try:
                result = read(reply.body)
            except InvalidResponse as problem:
                raise ExtenderError(str(problem)) from problem
        except ExtenderError as problem:
            self._log_throttled("Extender failed", verb, pod, began, problem)
            raise
        if trio.current_time() - began > SLOW_EXTENDER_SECONDS:
            self._log_throttled("Extender is slow", verb, pod, began)
        return result

    def _log_throttled(
        self, message: str, verb: str, pod: Pod, began: float, problem: ExtenderError | None = None
    ) -> None:
        now = trio.current_time()
        if now < self._next_log_at:
            self._suppressed += 1
            return
        self._next_log_at = now + EXTENDER_LOG_INTERVAL_SECONDS
        fields: dict[str, object] = {
            "extender": self.name,
            "verb": verb,
            "pod": pod.key,
            "seconds": round(now - began, 3),
        }
        if problem is not None:
            fields |= {"ignorable": self.is_ignorable, "err": str(problem)}
        if self._suppressed:
            fields["suppressed"] = self._suppressed
            self._suppressed = 0
        log.warning(message, extra=fields)


def tls_settings(config: ExtenderConfig) -> TlsSettings | None:
    """How to verify the extender, and the client certificate; None for the system's authorities and no certificate."""
    tls = config.tls_config
    has_ca = tls is not None and bool(tls.ca_file or tls.ca_data)
    insecure = (tls is not None and tls.insecure) or (config.enable_https and not has_ca)
    if tls is None:
        return TlsSettings(insecure_skip_verify=True) if insecure else None
    # A certificate without a key, or a key without a certificate, is ignored, as in kube-scheduler.
    has_client_certificate = bool(tls.cert_file or tls.cert_data) and bool(tls.key_file or tls.key_data)
    return TlsSettings(
        ca_file=tls.ca_file,
        ca_data=tls.ca_data,
        insecure_skip_verify=insecure,
        server_name=tls.server_name,
        client_certificate_file=tls.cert_file if has_client_certificate else "",
        client_certificate_data=tls.cert_data if has_client_certificate else b"",
        client_key_file=tls.key_file if has_client_certificate else "",
        client_key_data=tls.key_data if has_client_certificate else b"",
    )


def _statuses(result: FilterResult) -> dict[str, Status]:
    """Why nodes were filtered out; of a node in both maps the unresolvable reason counts."""
    statuses = {name: unschedulable(reason) for name, reason in result.failed.items()}
    return statuses | {name: unresolvable(reason) for name, reason in result.unresolvable.items()}
