"""The real daemon on the embedded API server, with simulated kubelets."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from random import Random
from typing import Final

import click
import trio
from attrs import define, evolve, field, frozen

from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.clients import Clients, open_clients
from trio_sched.daemon.memory import freeze_garbage_collector
from trio_sched.daemon.plugins.plugin_http import BlockingTransport, HttpTransport
from trio_sched.daemon.pods.waiting_pods import WaitingPod
from trio_sched.daemon.reload import ReloadRequests
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.signals import stop_on_signal
from trio_sched.daemon.supervisor import run_daemon
from trio_sched.embedded import EmbeddedCaller
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError
from trio_sched.go.text import printable_lines
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulation.explanations import Explanation, explain_pods
from trio_sched.simulation.history import History
from trio_sched.simulation.live_pages.served_page import PAGE_PATH, ServedPage
from trio_sched.simulation.missed_events import missed_events
from trio_sched.simulation.outcome import Outcome, is_decided, read_outcome
from trio_sched.simulation.own_claims import OwnClaims
from trio_sched.simulation.provisioners import DoubtfulProvisioners
from trio_sched.simulation.simulated_cluster import run_cluster, same_order
from trio_sched.simulation.stall_detector import StallDetector
from trio_sched.simulation.units import duration
from trio_sched.simulator import ApiServer, Controllers, jumping_clock, populate, serve, trio_clock
from trio_sched.simulator.kubelets.kubelet import RUN_SECONDS, annotated_number
from trio_sched.simulator.kubelets.pod_states import is_unreachable
from trio_sched.simulator.manifests.arrivals import Arrivals, split_arrivals
from trio_sched.simulator.manifests.manifests import Manifest, ManifestProblem
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_VERSION
from trio_sched.simulator.storage.object_store import Change, ObjectStore, StoredObject

EMBEDDED: Final = ConnectionSettings(server="http://trio-sched.simulator")
"""The address of the embedded server for clients in this process."""
_HISTORY: Final = 2_000
"""How many changes are kept for watches that resume: nothing interrupts them in a simulation, and each costs memory."""
_STEP_SECONDS: Final = 0.25
"""The cluster's time advances so far at least; else each pod would cost several turns of trio's loop of its own."""
QUIET_SECONDS: Final = 30.0
"""A cluster that has not changed for this long is idle: three times as long as a pod backs off at most."""
LONGEST_SECONDS: Final = 24 * 3600.0
"""When to stop waiting for a cluster that never becomes idle."""


def say_on_stderr(line: str) -> None:
    """Print *line*."""
    click.echo(printable_lines(line), err=True)


Count = Callable[[int, int], None]
"""Is called with the number of pods that have been decided on, and of all pods."""


class ExtendersRefused(TrioSchedError):
    """The configuration has extenders, which simulations have no time for."""


@frozen(kw_only=True)
class RunningCluster:
    """A simulated cluster that has come to rest, for whoever changes it."""

    server: ApiServer
    schedulers: frozenset[str]
    """The names of the schedulers that run."""
    settle: Callable[[], Awaitable[bool]]
    """Waits until it has come to rest again; returns False if it does not."""
    outcome: Callable[[], Outcome]
    """Reads it as it is now."""


@frozen(kw_only=True)
class Plan:
    """What to simulate."""

    settings: DaemonSettings
    manifests: Sequence[Manifest]
    seed: int
    begins: datetime
    """The cluster's time at the beginning."""
    kubernetes_version: str = DEFAULT_VERSION
    """The version of the API server."""
    for_seconds: float | None = None
    """How long, in the cluster's time; None for until it is idle."""
    explained: Callable[[Outcome], Mapping[str, Collection[str]]] = lambda _outcome: {}
    """The pods to explain at the end, and nodes whose scores are of interest; see `explain_pods`."""
    change: Callable[[RunningCluster], Awaitable[None]] | None = None
    """Changes the cluster when it has come to rest; it is the end when it has done so once more."""
    inspect: Callable[[ObjectStore, Assembly, datetime], Awaitable[None]] | None = None
    """Looks at the objects and the scheduler at the end; *now* is the cluster's time then."""
    explains_placements: bool = False
    """Whether to explain pods, which have full names then, without the volumes and devices that they got."""
    say: Callable[[str], None] = say_on_stderr
    """Takes a line for each pod that is left out."""

    def leave_out(self, problem: ManifestProblem) -> None:
        """Say that a pod has no room in its quota."""
        self.say(f"Warning: left out: {problem}")

    def say_assumptions(self, outcome: Outcome) -> None:
        """Say what need not be so in the cluster that was simulated."""
        for one in outcome.assumptions:
            more = f" and {len(one.claims) - 1} more" if len(one.claims) > 1 else ""
            self.say(f"Warning: assumed: {one.message} ({one.claims[0]}{more})")


def scheduler_names(settings: DaemonSettings) -> list[str]:
    """The schedulers whose pods a daemon with *settings* places, in the order of its profiles."""
    return [profile.scheduler_name for profile in settings.config.profiles]


def refuse_extenders(settings: DaemonSettings) -> None:
    """Refuse extenders: simulated time jumps over every wait for the network, so that none could answer in time.

    Raises:
        ExtendersRefused: there are extenders.
    """
    if settings.config.extenders:
        raise ExtendersRefused(
            "extenders cannot be asked in simulated time; add --serve to run in real time, or leave them out"
        )


def run_plan(plan: Plan, progress: Count) -> Outcome:
    """Schedule the cluster of *plan* on a clock that jumps; see `run_simulation`.

    Raises:
        ManifestError: an object is refused.
        TrioSchedError: the daemon cannot run so, or a pod cannot be explained; possibly in an exception group.
    """
    freeze_garbage_collector()  # nothing of the manifests becomes garbage
    with same_order(plan.seed):
        return trio.run(run_simulation, plan, progress, clock=jumping_clock(_STEP_SECONDS))


async def run_simulation(plan: Plan, progress: Count) -> Outcome:
    """Schedule the cluster of *plan* on trio's clock and read the outcome.

    Raises:
        ManifestError: an object is refused.
        TrioSchedError: the daemon cannot run so, or a pod cannot be explained; possibly in an exception group.
    """
    server = ApiServer(
        trio_clock(plan.begins), plan.seed, history_limit=_HISTORY, kubernetes_version=plan.kubernetes_version
    )
    doubtful = DoubtfulProvisioners.among(plan.manifests)  # what is stored of them has no kind any more
    arrivals = _populate(server, plan)
    own_claims = OwnClaims(server.store) if plan.explains_placements else None
    began, stop = trio.current_time(), trio.Event()
    history, others = History(server.store), Controllers(server)
    activity = Activity(server, frozenset(scheduler_names(plan.settings)), others, arrivals)
    requests = BlockingTransport()  # simulated time must not go on meanwhile

    async def settle() -> bool:
        if plan.for_seconds is not None:
            await trio.sleep(plan.for_seconds)
            return activity.is_idle
        activity.changed_at = trio.current_time()  # whatever was changed, pods may follow
        return await activity.wait_until_idle()

    def outcome_now(settled: bool) -> Outcome:
        seconds = (activity.changed_at if plan.for_seconds is None else trio.current_time()) - began
        return read_outcome(
            server.store,
            activity.schedulers,
            seconds,
            settled=settled,
            gated={key: f"{one.gating_plugin}: {one.gating_message}" for key, one in activity.gated().items()},
            on_permit={one.pod.key: _waits_on_permit(one, began) for one in assembly.waiting.by_uid.values()},
            history=history,
            assumptions=doubtful.assumptions(server.store),
            notes=missed_events(assembly.scheduler),
        )

    async with _scheduled(plan, server, arrivals, others, stop, of_plugins=requests) as assembly:
        queue = assembly.scheduler.queue
        activity.gated, activity.retries = queue.gated, lambda: len(queue.retries)
        trio.lowlevel.add_instrument(StallDetector(lambda: activity.undecided, lambda: queue.counters.incoming))
        with activity.followed(progress), history.followed():
            settled = await settle()
            if plan.change is not None:
                running = RunningCluster(
                    server=server, schedulers=activity.schedulers, settle=settle, outcome=partial(outcome_now, settled)
                )
                await plan.change(running)
                settled = await settle()
        outcome = outcome_now(settled)
        plan.say_assumptions(outcome)
        if plan.inspect is not None:
            await plan.inspect(server.store, assembly, server.now())
        if own_claims is None:
            explanations = explain_pods(server.store, assembly.scheduler, plan.explained(outcome), plan.say)
        else:
            explanations = tuple(
                _explain_placements(server.store, assembly.scheduler, plan.explained(outcome), own_claims)
            )
        stop.set()
    return evolve(outcome, explanations=explanations)


def _waits_on_permit(waiting: WaitingPod, began: float) -> str:
    since, now = duration(waiting.began - began), trio.current_time()
    texts = []
    for one in waiting.pending():
        until, why = duration(one.seconds_left + now - began), f": {one.message}" if one.message else ""
        texts.append(f"{one.plugin} lets it wait on permit since {since} after the beginning, until {until}{why}")
    return "; ".join(texts)


def _explain_placements(
    store: ObjectStore, scheduler: Scheduler, pods: Mapping[str, Collection[str]], own_claims: OwnClaims
) -> Iterator[Explanation]:
    for key, nodes in pods.items():
        with own_claims.hidden(key, scheduler):
            yield from explain_pods(store, scheduler, {key: nodes})


async def serve_until_signal(
    plan: Plan, host: str, port: int, announce: Callable[[str], None], reload: ReloadRequests | None = None
) -> None:
    """Keep the cluster of *plan* alive on a port, in real time, until a signal ends it.

    Args:
        plan: the cluster; its *for_seconds* is ignored.
        host: the address to listen on.
        port: 0 lets the system choose.
        announce: is called with the server's URL once everything runs.
        reload: what is reloaded when it has changed, if anything is.

    Raises:
        ManifestError: an object is refused.
        OSError: the address cannot be listened on.
        TrioSchedError: the daemon cannot run so, possibly in an exception group.
    """
    server = ApiServer(trio_clock(plan.begins), plan.seed, kubernetes_version=plan.kubernetes_version)
    stop = trio.Event()
    arrivals = _populate(server, plan)
    async with trio.open_nursery() as serving:
        await serving.start(stop_on_signal, stop)
        page = ServedPage()
        url = await serving.start(partial(serve, server, host=host, port=port, others={PAGE_PATH: page}))
        async with _scheduled(plan, server, arrivals, Controllers(server), stop, reload=reload) as assembly:
            serving.start_soon(page.run, assembly)
            announce(url)
        serving.cancel_scope.cancel()


def _populate(server: ApiServer, plan: Plan) -> Arrivals:
    """Create what there is at the beginning; returns what comes later.

    Raises:
        ManifestError: an object is refused.
    """
    first, arrivals = split_arrivals(plan.manifests)
    populate(server, first, plan.leave_out)
    return arrivals


@asynccontextmanager
async def _scheduled(
    plan: Plan,
    server: ApiServer,
    arrivals: Arrivals,
    controllers: Controllers,
    stop: trio.Event,
    *,
    of_plugins: HttpTransport | None = None,
    reload: ReloadRequests | None = None,
) -> AsyncGenerator[Assembly, None]:
    """Run the cluster of *server* and its scheduler; the block is left when *stop* has ended the scheduler."""
    async with trio.open_nursery() as cluster:
        await cluster.start(run_cluster, server, controllers)
        cluster.start_soon(arrivals.run, server, plan.leave_out)
        connections = in_process_clients(server, plan.settings, of_plugins)
        async with connections as clients, trio.open_nursery() as scheduling:
            assembly = assemble(plan.settings, clients, random=Random(plan.seed), wall_clock=server.now)
            await scheduling.start(partial(run_daemon, assembly, stop=stop, reload=reload))
            yield assembly
        cluster.cancel_scope.cancel()


@define(eq=False)
class Activity:
    """Observes from inside the server whether the pods still change.

    Args:
        server: the cluster.
        schedulers: the names of the schedulers whose pods count.
        controllers: of their volumes, claims and devices.
        arrivals: the objects that are created later.
    """

    server: ApiServer
    schedulers: frozenset[str]
    controllers: Controllers
    arrivals: Arrivals = field(factory=Arrivals)
    gated: Callable[[], Mapping[str, QueuedPodInfo]] = field(default=lambda: {}, init=False)
    """The pods that the scheduler does not try before something changes."""
    retries: Callable[[], int] = field(default=lambda: 0, init=False)
    """How many timers of plugins run, after which pods are tried again."""
    changed_at: float = field(factory=trio.current_time, init=False)
    _undecided: set[str] = field(factory=set, init=False)
    _ending: dict[str, str] = field(factory=dict, init=False)
    """Pods that are to end by themselves → their nodes."""

    @property
    def undecided(self) -> int:
        """How many pods are not decided on."""
        return len(self._undecided)

    @property
    def is_idle(self) -> bool:
        """Whether every pod is decided on or gated, and nothing is to come: no end, creation or retry of a plugin."""
        if self._some_will_end() or self.arrivals.waiting or self.controllers.is_busy or self.retries():
            return False
        return not self._undecided or self._undecided <= self.gated().keys()

    @contextmanager
    def followed(self, progress: Count) -> Generator[None, None, None]:
        """Follow the changes of pods while in the block, and report them to *progress*."""
        pods = self.server.store.collection("pods")

        def on_change(change: Change) -> None:
            self.changed_at = trio.current_time()
            self._note(change.current, gone=change.type == "DELETED")
            progress(len(pods.objects) - len(self._undecided), len(pods.objects))

        for stored in pods.objects.values():
            self._note(stored, gone=False)
        end = pods.listen(on_change)
        try:
            yield
        finally:
            end()

    async def wait_until_idle(self) -> bool:
        """Wait until the cluster is idle and has not changed for `QUIET_SECONDS`; False after `LONGEST_SECONDS`."""
        until = trio.current_time() + LONGEST_SECONDS
        while trio.current_time() < until:
            # Compared with the moment that was slept until: a difference of floats may be off by one bit, for ever.
            quiet_from = self.changed_at + QUIET_SECONDS
            if trio.current_time() < quiet_from:
                await trio.sleep_until(quiet_from)
            elif self.is_idle:
                return True
            else:
                await trio.sleep(QUIET_SECONDS)
        return False

    def _note(self, stored: StoredObject, *, gone: bool) -> None:
        fields, key = stored.fields, stored.key
        if gone or is_decided(fields, self.schedulers):
            self._undecided.discard(key)
        else:
            self._undecided.add(key)
        phase = (fields.get("status") or {}).get("phase")
        if not gone and phase == "Running" and annotated_number(fields, RUN_SECONDS) is not None:
            self._ending[key] = fields["spec"].get("nodeName") or ""
        else:
            self._ending.pop(key, None)

    def _some_will_end(self) -> bool:
        """Whether a pod that is to end by itself is on a node that would tell of it."""
        nodes = self.server.store.collection("nodes").objects
        return any(node in nodes and not is_unreachable(nodes[node].fields) for node in set(self._ending.values()))


def in_process_clients(
    server: ApiServer, settings: DaemonSettings, of_plugins: HttpTransport | None = None
) -> AbstractAsyncContextManager[Clients]:
    """Connections to *server*, limited as *settings* say; *of_plugins* carries the requests of plugins to others."""
    caller = EmbeddedCaller(server, EMBEDDED.server)
    return open_clients(settings.config, EMBEDDED, caller=caller, of_plugins=of_plugins)
