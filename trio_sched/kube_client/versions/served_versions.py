"""Chooses the version in which a kind is read and written, and another when the server stops serving that one."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import trio
from attrs import define, field

from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import NotFound
from trio_sched.kube_client.kinds import Kind, T
from trio_sched.kube_client.versions.api_versions import ApiVersion, VersionedKind, in_version, versioned
from trio_sched.kube_client.versions.discovery import Served, discover

ASK_AGAIN_SECONDS: Final = 180.0
"""A server that does not serve a kind is asked this often whether it does by now."""
LOOK_FOR_BETTER_SECONDS: Final = 600.0
"""So old is the answer, at least, when the server is asked for a better version than one that it serves, too."""
_ASK_AT_MOST_EVERY_SECONDS: Final = 1.0

R = TypeVar("R")


class NotServed(NotFound):
    """The server serves no version of a kind that can be read."""

    def __init__(self, kind: Kind[Any], row: VersionedKind) -> None:
        versions = ", ".join(one.name for one in row.versions)
        text = f"the server serves none of the versions {versions} of {kind.plural}.{kind.group}: {row.cost}. {row.fix}"
        super().__init__(code=404, reason="NotFound", message=text)


@define(eq=False)
class ServedVersions:
    """What one API server serves, as far as that is known: asked once, by whoever needs it first.

    It is asked again when a version that was served is not any more, when the connection was lost and found again, and
    from time to time while a kind is missing, or is used in another version than the best: an upgrade behind a load
    balancer can go unnoticed, and the older version is still served.
    """

    client: KubeClient
    _served: Served | None = field(default=None, init=False)
    _refused: set[tuple[str, str, str]] = field(factory=set, init=False)
    """Group, version and plural of what has answered 404 since the server was asked last."""
    _asked_at: float = field(default=-math.inf, init=False)
    _outages: int = field(default=0, init=False)
    """How often the server had been away when it was asked."""
    _is_outdated: bool = field(default=False, init=False)
    """Whether something was seen since that contradicts the answer."""
    _asking: trio.Lock = field(factory=trio.Lock, init=False)

    async def version_of(self, kind: Kind[T]) -> Kind[T]:
        """*kind* in the best version that is served; itself if there is only one.

        Raises:
            NotServed: all of its versions have answered 404.
        """
        row = versioned(kind)
        if row is None:
            return kind
        if self._must_ask():
            await self._ask()
        found = self._best(kind, row)
        age = trio.current_time() - self._asked_at
        if found is None and age >= ASK_AGAIN_SECONDS:
            await self._ask()
            found = self._best(kind, row)
        elif found is not None and found is not row.versions[0] and age >= LOOK_FOR_BETTER_SECONDS:
            await self._ask(keep=True)
            found = self._best(kind, row)
        if found is None:
            raise NotServed(kind, row)
        return in_version(kind, found)

    def known(self, kind: Kind[T]) -> Kind[T]:
        """*kind* in the version that is used for it now, as far as that is known without a question."""
        row = versioned(kind)
        found = None if row is None or self._served is None else self._best(kind, row)
        return kind if found is None else in_version(kind, found)

    def refused(self, kind: Kind[Any], chosen: Kind[Any]) -> bool:
        """What `version_of` has returned for *kind* has answered 404; returns whether to ask for another."""
        if versioned(kind) is None:
            return False
        self._refused.add((kind.group, chosen.version, chosen.plural))
        self._is_outdated = self._is_outdated or self._says_served(kind.group, chosen.version, chosen.plural)
        return True

    def is_missing(self, kind: Kind[Any]) -> bool:
        """Whether the server says that it serves no version of *kind*, and none of them answers."""
        row = versioned(kind)
        if row is None or not self.is_said_missing(kind):
            return False
        return all((kind.group, one.name, one.plural(kind)) in self._refused for one in row.versions)

    def is_said_missing(self, kind: Kind[Any]) -> bool:
        """Whether the server says that it serves no version of *kind*, whatever it answers to requests."""
        row = versioned(kind)
        if row is None or self._served is None or kind.group not in self._served:
            return False
        return not any(self._says_served(kind.group, one.name, one.plural(kind)) for one in row.versions)

    async def use(self, kind: Kind[T], request: Callable[[Kind[T]], Awaitable[R]]) -> R:
        """What *request* returns when it is called with *kind* in a served version; if that has gone, with another.

        Raises:
            NotFound: there is no such object, or no version is served.
        """
        while True:
            chosen = await self.version_of(kind)
            try:
                return await request(chosen)
            except NotFound as error:
                is_about_object = error.details is not None and error.details.name
                if is_about_object or not self.refused(kind, chosen):
                    raise

    def _must_ask(self) -> bool:
        if self._asked_at == -math.inf:
            return True
        is_outdated = self._is_outdated or self._outages != self.client.reachability.outages
        return is_outdated and trio.current_time() - self._asked_at >= _ASK_AT_MOST_EVERY_SECONDS

    async def _ask(self, *, keep: bool = False) -> None:
        """Ask the server, unless another task has just done so; *keep* what is known if it does not say anything."""
        before = self._asked_at
        async with self._asking:
            if self._asked_at != before:
                return
            outages = self.client.reachability.outages
            served = await discover(self.client)
            self._asked_at = trio.current_time()
            if served is None and keep:
                return
            self._served, self._outages, self._is_outdated = served, outages, False
            self._refused.clear()

    def _best(self, kind: Kind[Any], row: VersionedKind) -> ApiVersion | None:
        """The version to try next: those first that the server says it serves. None: all were refused."""
        left = [one for one in row.versions if (kind.group, one.name, one.plural(kind)) not in self._refused]
        return min(left, key=lambda one: not self._says_served(kind.group, one.name, one.plural(kind)), default=None)

    def _says_served(self, group: str, version: str, plural: str) -> bool:
        return self._served is not None and (version, plural) in self._served.get(group, ())
