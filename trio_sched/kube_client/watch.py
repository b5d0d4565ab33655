"""Lists and watches all objects of a kind; lists again when the resource version has expired.

Three levels: forever (:meth:`Reflector.run`), a list and its difference to the one before (:meth:`Reflector._list`),
one connection (:meth:`Reflector._watch`). Changes are delivered by a plain call in the task that reads, a batch per
read of the socket: a memory channel in between would cost as much as the decoding.
"""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any, Generic
from urllib.parse import urlencode

import trio
from attrs import define, field

from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import EVENT_TYPES, Codec, Page, Undecoded, WatchEvent
from trio_sched.kube_client.errors import (
    ApiError,
    ApiStatus,
    ConnectionFailed,
    CredentialsError,
    Expired,
    KubeClientError,
    NotAnApiServer,
    NotFound,
    TooManyRequests,
    UndecodableObject,
    error_from_status,
)
from trio_sched.kube_client.kinds import Kind, T
from trio_sched.kube_client.retry import connection_pause, own_pause, refusal_pause
from trio_sched.kube_client.verbs import list_from_cache, list_pages
from trio_sched.kube_client.versions.served_versions import NotServed, ServedVersions
from trio_sched.objects.changes import Change, Changes, Listed, difference
from trio_sched.tracebacks import forget_tracebacks
from trio_sched.verbosity import V2, V4

log = logging.getLogger(__name__)

WATCH_SECONDS = (300, 600)
"""The timeout that a watch asks for; drawn at random, so that many watches do not end at the same time."""
MARGIN_SECONDS = 30.0
MISSED_BOOKMARK_SECONDS = 100.0
"""An API server that sends bookmarks sends one every minute. Whether it does to a watch depends on whether there was a
change of the kind after the version that the watch began with, or its etcd reports progress. A watch that got one and
then is silent for so long is dead."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""The largest event; an API server stores objects of a megabyte or two."""
FRESH_LIST_SECONDS = 1.0
"""A list counts as up to date for so long without a watch."""
VERY_SHORT_SECONDS = 1.0
LOG_INTERVAL_SECONDS = 30.0
"""The same error of one kind is logged this often."""
EXPIRED_AGAIN_SECONDS = 30.0
"""A second 410 within this time is not normal."""
_DEADLINE_STEP_SECONDS = 1.0

_Key = tuple[str, str]


class WatchBroken(KubeClientError):
    """A watch that went silent, sent no events, or ended at once: the next one has to wait."""


class WatchSilent(WatchBroken):
    """A watch from which nothing came for too long: it is started again, and nothing is lost."""


@define(eq=False)
class WatchErrorLog:
    """Logs the errors of the watch of a kind: the default for ``on_error``.

    What was said a moment ago is said again only with more detail switched on: a server that is away is asked often.
    """

    _last: str = field(init=False, default="")
    _logged_at: float = field(init=False, default=-math.inf)

    def __call__(self, plural: str, error: KubeClientError) -> None:
        """Log *error* with the kind *plural*."""
        text, now = str(error), trio.current_time()
        is_news = text != self._last or now - self._logged_at >= LOG_INTERVAL_SECONDS
        if is_news:
            self._last, self._logged_at = text, now
        if isinstance(error, WatchSilent):
            log.log(logging.INFO if is_news else V4, "The watch of %s has been %s", plural, text)
            return
        # Of what is no API server there is a line already.
        level = V4 if isinstance(error, NotAnApiServer) or not is_news else logging.ERROR
        log.log(level, "Failed to watch %s: %s", plural, text)


async def list_and_watch(
    client: KubeClient,
    kind: Kind[T],
    deliver: Callable[[Listed[T] | Changes[T]], None],
    *,
    random: Random,
    namespace: str = "",
    on_error: Callable[[str, KubeClientError], None] | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Deliver all objects of *kind*, and then every change of them; never returns.

    Reports started once the first list was delivered. After failures it tries again: as soon as the server answers
    anybody, if a connection failed; after ever longer pauses, if the server refuses.

    Args:
        client: sends the requests; its rate limit applies to lists, not to watches.
        kind: what to list and watch.
        deliver: called with a :class:`Listed` once, then with :class:`Changes`; it must not wait. An object that was
            deleted and created again is delivered as both, even if the deletion was missed: its UID shows it.
        random: for the timeouts of watches and the jitter of pauses.
        namespace: of the objects; empty: all namespaces.
        on_error: called with failures after which it tries again, and with malformed objects that are left out; None
            for a `WatchErrorLog`.
        task_status: see above.
    """
    reflector = Reflector(client, kind, deliver, random, namespace, on_error or WatchErrorLog())
    await reflector.run(task_status=task_status)


@define(eq=False)
class Reflector(Generic[T]):
    """Lists and watches as :func:`list_and_watch` says; keeps every object as it was delivered last.

    With *served* it does so in the version that the server serves, and goes on in another one where it stopped:
    resource versions are the same in all. Objects of a kind that is no longer served are delivered as deleted only if
    the server says that it serves none of its versions.
    """

    client: KubeClient
    kind: Kind[T]
    deliver: Callable[[Listed[T] | Changes[T]], None]
    random: Random
    namespace: str = ""
    on_error: Callable[[str, KubeClientError], None] = field(factory=WatchErrorLog)
    served: ServedVersions | None = None
    connected: trio.Event = field(init=False, factory=trio.Event)
    """Set while a watch is open; replaced by a new event when the watch ends."""
    listed_kind: Kind[Any] | None = field(init=False, default=None)
    """*kind* in the version that was listed last; None if nothing was listed, or the server serves it no more."""
    lists: int = field(init=False, default=0)
    """How often the objects were listed."""
    watches: int = field(init=False, default=0)
    """How many watches were begun."""
    last_received_at: float = field(init=False, default=-math.inf)
    """When the last bytes of a list or a watch arrived, to the second."""
    _pause: trio.CancelScope | None = field(init=False, default=None)
    _codec: Codec[T] = field(init=False)
    _known: dict[_Key, T] | None = field(init=False, default=None)
    _version: str = field(init=False, default="")
    _must_list: bool = field(init=False, default=True)
    _is_first_try: bool = field(init=False, default=True)
    _listed_at: float = field(init=False, default=-math.inf)
    _expired_at: float = field(init=False, default=-math.inf)
    """When the resource version had expired last."""
    _failing_since: float | None = field(init=False, default=None)
    """When the first of the failures was that followed each other."""
    _outages: int = field(init=False, default=0)
    """Those of the server up to the last failure."""
    _has_read_some: bool = field(init=False, default=False)
    """Whether a part of the list that is being read has arrived: the server has worked for it."""
    _bookmarks: int = field(init=False, default=0)
    """How many the watch has got."""
    _opened_at: float = field(init=False, default=-math.inf)
    """When the last watch began to be answered."""
    _watching: trio.CancelScope | None = field(init=False, default=None)
    """Around the watch that is open."""

    def __attrs_post_init__(self) -> None:
        self._codec = Codec(self.kind)

    @property
    def resource_version(self) -> str:
        """That of the last change or list that was delivered, or of a later bookmark; empty before the first list."""
        return self._version

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """List, then watch again and again, and list again when the resource version has expired; never returns."""
        is_first = True
        while True:
            try:
                if self.served is not None:
                    await self._choose_version(self.served)
                if self._must_list:
                    await self._list()
                    if is_first:
                        is_first = False
                        task_status.started()
                with trio.CancelScope() as self._watching:
                    await self._watch()
                continue  # the server ends every watch after some minutes: watch again from where it stopped
            except Expired as error:
                # Normal after a long silence or a restart of the server: it no longer has the changes since then.
                # Soon after another time it is not normal, and must not lead to one list after the other.
                self._must_list = True
                expired_at, self._expired_at = self._expired_at, trio.current_time()
                if self._expired_at - expired_at > EXPIRED_AGAIN_SECONDS:
                    log.log(V4, "listing %s again: %s", self.kind.plural, error)
                    continue
                problem: KubeClientError = error
            except NotFound as error:
                if self._has_other_version(error):
                    self._is_first_try = self._known is None
                    continue
                problem = error
            except (ApiError, ConnectionFailed, CredentialsError, UndecodableObject, WatchBroken) as error:
                problem = error
            self.on_error(self.kind.plural, problem)
            forget_tracebacks(problem)  # the pause can be long, and what was read of a list is in the frames
            with trio.CancelScope() as self._pause:
                await self._wait_after(problem)

    async def _wait_after(self, problem: KubeClientError) -> None:
        """Wait until it makes sense to try again."""
        now, reachability = trio.current_time(), self.client.reachability
        if self._failing_since is None or self._outages != reachability.outages:
            self._failing_since = now  # while the server was away, nobody has refused anything
        self._outages = reachability.outages
        failing_for = now - self._failing_since
        if isinstance(problem, ConnectionFailed) and not self._has_read_some:
            if problem.server_answers:
                return
            reachability.lost()
            pause = connection_pause(failing_for, is_checked=reachability.is_checked, is_list=self._must_list)
        elif isinstance(problem, ApiError):
            pause = refusal_pause(failing_for, problem)
        else:
            pause = own_pause(failing_for)
        await reachability.pause(
            pause.seconds * self.random.uniform(0.5, 1.0) + pause.at_least_seconds, at_least=pause.at_least_seconds
        )

    @property
    def objects(self) -> Collection[T]:
        """All objects as they were delivered last."""
        return () if self._known is None else self._known.values()

    @property
    def by_name(self) -> Mapping[tuple[str, str], T]:
        """The objects by namespace and name."""
        return {} if self._known is None else self._known

    def known(self, namespace: str, name: str) -> T | None:
        """One object as it was delivered last; None if there is none."""
        return None if self._known is None else self._known.get((namespace, name))

    def list_again(self) -> None:
        """List all objects again, and deliver what differs from what was delivered."""
        self._must_list = True
        if self._watching is not None:
            self._watching.cancel()

    @property
    def is_up_to_date(self) -> bool:
        """Whether a watch is open, or the list is so fresh that it cannot be yet."""
        return self.connected.is_set() or trio.current_time() - self._listed_at < FRESH_LIST_SECONDS

    @property
    def has_listed(self) -> bool:
        """Whether there was a first list."""
        return self._known is not None

    def reconnect_now(self) -> None:
        """End the pause after a failure and try again now."""
        if self._pause is not None:
            self._pause.cancel()

    async def _choose_version(self, served: ServedVersions) -> None:
        """Use the version that is served from now on.

        Raises:
            NotServed: there is none.
        """
        try:
            chosen = await served.version_of(self.kind)
        except NotServed:
            if self.listed_kind is not None and self._known is not None and served.is_missing(self.kind):
                gone, self._known, self.listed_kind = self._known, {}, None
                self.deliver(Changes(difference(gone, {}), self._version, relisted=True))
            self._must_list = True
            raise
        if chosen is not self._codec.kind:
            log.log(V2, "%s are read in the version %s", self.kind.plural, chosen.api_version)
            self._must_list = self._must_list or chosen.plural != self._codec.kind.plural
            self._codec = Codec(chosen)

    def _has_other_version(self, error: NotFound) -> bool:
        """Whether to go on in another version after *error*: the server was upgraded, or did not say what it serves."""
        if self.served is None or isinstance(error, NotServed):
            return False
        return self.served.refused(self.kind, self._codec.kind)

    async def _list(self) -> None:
        """List all objects; deliver them, or their difference to what was delivered before."""
        self._has_read_some = False
        fresh: dict[_Key, T] = {}
        unreadable: dict[_Key, UndecodableObject] = {}
        transform = self.kind.transform
        known: dict[_Key, T] = {} if self._known is None else self._known
        version = ""

        def take(page: Page[T]) -> None:
            nonlocal version
            self._has_read_some = True
            version = page.metadata.resource_version
            if page.starts_over:
                fresh.clear()
                unreadable.clear()
            for listed in page.objects:
                key = (listed.metadata.namespace, listed.metadata.name)
                fresh[key] = listed if transform is None else transform(listed, known.get(key))
            for bad in page.undecoded:
                unreadable[bad.namespace, bad.name] = bad.error

        # Later lists must not be older than what was delivered, and a server that cannot stream gets another try.
        read = list_from_cache if self._is_first_try else list_pages
        self._is_first_try = False
        await read(self.client, self._codec.kind, take, namespace=self.namespace, codec=self._codec)
        for error in unreadable.values():
            self.on_error(self.kind.plural, error)
        is_first = self._known is None
        self._known = fresh
        self.listed_kind = self._codec.kind
        self._version = version
        self._must_list = self._has_read_some = False
        self._listed_at = self.last_received_at = trio.current_time()
        self.lists += 1
        if is_first:
            self.deliver(Listed(list(fresh.values()), version))
            name = f"{self.kind.plural}.{self.kind.group}".rstrip(".")
            log.log(V2, "Caches populated", extra={"type": name, "objects": len(fresh)})
            return
        for key in unreadable.keys() & known.keys():  # it still exists, so its last readable state is kept
            fresh[key] = known[key]
        self.deliver(Changes(difference(known, fresh), version, relisted=True))

    async def _watch(self) -> None:
        """Watch over one connection, until the server ends it.

        Raises:
            Expired: the resource version is too old, so a list is needed.
            ApiError: the server refused, or ended the watch with an error.
            ConnectionFailed: the connection broke.
            WatchSilent: nothing came for too long.
            WatchBroken: the watch sent what is no event, or ended right after it began.
        """
        self.watches += 1
        seconds = self.random.randint(*WATCH_SECONDS)
        version_before = self._version
        target = self._watch_target(seconds)
        began = moved = trio.current_time()
        last_moment = began + seconds + MARGIN_SECONDS
        self._bookmarks = 0
        unfinished: list[bytes] = []
        unfinished_bytes = 0
        idle_limit = trio.CancelScope(deadline=last_moment)
        with idle_limit, self._while_connected():
            async with self.client.stream(target) as stream:
                self._opened()
                while piece := await stream.receive():
                    now = trio.current_time()
                    if now - moved > _DEADLINE_STEP_SECONDS:  # moving a deadline is not free, a second does not matter
                        moved = self.last_received_at = now
                        if self._bookmarks:
                            idle_limit.deadline = min(now + MISSED_BOOKMARK_SECONDS, last_moment)
                    end = piece.rfind(b"\n") + 1
                    if not end:
                        unfinished.append(piece)
                        unfinished_bytes += len(piece)
                        if unfinished_bytes > MAX_LINE_BYTES:
                            sent = f"the watch of {self.kind.plural} sent a line of more than {MAX_LINE_BYTES} bytes"
                            raise WatchBroken(f"{sent}; connecting again")
                        continue
                    unfinished_bytes = len(piece) - end
                    if unfinished:
                        unfinished.append(piece[:end])
                        lines = b"".join(unfinished)
                        unfinished.clear()
                    else:
                        lines = piece[:end]
                    if end < len(piece):
                        unfinished.append(piece[end:])
                    had_bookmark = self._bookmarks
                    self._apply(self._codec.events(lines))
                    if self._bookmarks and not had_bookmark:
                        idle_limit.deadline = min(now + MISSED_BOOKMARK_SECONDS, last_moment)
        if idle_limit.cancelled_caught:
            silent = trio.current_time() - moved
            raise WatchSilent(f"silent for {silent:.0f} s; connecting again")
        # Progress counts, not bytes: what contains no event must not lead to one connection after the other.
        if self._version == version_before and trio.current_time() - began < VERY_SHORT_SECONDS:
            raise WatchBroken(
                f"very short watch: {self.kind.plural}: Unexpected watch close - "
                "watch lasted less than a second and no items received"
            )

    def _opened(self) -> None:
        """The server has begun to answer a watch, so it is there for the other kinds, too."""
        self.connected.set()
        self._opened_at = self.last_received_at = trio.current_time()
        self.client.reachability.answered()

    @contextmanager
    def _while_connected(self) -> Iterator[None]:
        version = self._version
        try:
            yield
        finally:
            if self.connected.is_set():
                self.connected = trio.Event()
                if self._version != version or trio.current_time() - self._opened_at >= VERY_SHORT_SECONDS:
                    self._failing_since = None

    def _watch_target(self, seconds: int) -> bytes:
        selector = {"fieldSelector": self.kind.field_selector} if self.kind.field_selector else {}
        query = {
            "allowWatchBookmarks": "true",
            **selector,
            "resourceVersion": self._version,
            "timeoutSeconds": seconds,
            "watch": "true",
        }
        return f"{self._codec.kind.collection(self.namespace)}?{urlencode(query)}".encode()

    def _apply(self, events: list[WatchEvent[T] | WatchEvent[ApiStatus] | WatchEvent[Undecoded]]) -> None:
        """Deliver the changes in *events*; an ERROR among them is raised after those before it were delivered."""
        known = self._known
        assert known is not None  # a watch follows a list
        transform = self.kind.transform
        changes: list[Change[T]] = []
        failure: ApiError | WatchBroken | None = None
        version = self._version
        for event in events:
            subject = event.object
            if event.type not in EVENT_TYPES:
                problem = subject.error.problem if isinstance(subject, Undecoded) else f'the type "{event.type}"'
                failure = WatchBroken(f"the watch of {self.kind.plural} sent a line that is no event: {problem}")
                break
            if isinstance(subject, Undecoded):
                if event.type != "BOOKMARK":  # which has metadata only, and so may not have the shape of this kind
                    self._leave_out(event.type, subject, known, changes)
                version = subject.resource_version or version
                continue
            if isinstance(subject, ApiStatus):
                failure = error_from_status(subject)
                break
            metadata = subject.metadata
            if event.type == "BOOKMARK":
                self._bookmarks += 1
                if _is_older(metadata.resource_version, version):
                    failure = _history_went_back(metadata.resource_version, version)
                    break
                version = metadata.resource_version
                continue
            version = metadata.resource_version
            key = (metadata.namespace, metadata.name)
            old = known.get(key)
            current = subject if transform is None else transform(subject, old)
            if event.type == "DELETED":
                if old is not None:
                    del known[key]
                    changes.append(Change("DELETED", old, current))
                continue
            known[key] = current
            if old is None:
                changes.append(Change("ADDED", None, current))
            elif old.metadata.uid == metadata.uid:
                changes.append(Change("MODIFIED", old, current))
            else:
                changes.append(Change("DELETED", old, None))
                changes.append(Change("ADDED", None, current))
        self._version = version
        if changes:
            self.deliver(Changes(changes, version))
        if failure is not None:
            self._must_list = not isinstance(failure, TooManyRequests)
            raise failure

    def _leave_out(self, event_type: str, bad: Undecoded, known: dict[_Key, T], changes: list[Change[T]]) -> None:
        """Leave out a malformed object; its deletion needs no more than its name."""
        self.on_error(self.kind.plural, bad.error)
        if event_type == "DELETED":
            gone = known.pop((bad.namespace, bad.name), None)
            if gone is not None:
                changes.append(Change("DELETED", gone, None))


def _is_older(version: str, than: str) -> bool:
    """Whether *version* is older than *than*; resource versions are opaque, but those of etcd are numbers.

    Compared by their digits, as numbers they would have to be of a length that Python converts.
    """
    are_numbers = (version + than).isascii() and version.isdecimal() and than.isdecimal()
    return are_numbers and (len(version), version) < (len(than), than)


def _history_went_back(version: str, known: str) -> Expired:
    message = f"the server's history is at {version}, before {known}: it was restored from a backup"
    return Expired(code=410, reason="Expired", message=message)
