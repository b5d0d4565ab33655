"""All endpoints: which path is served by what, some by the leader alone; the checks of ``/healthz`` and ``/readyz``."""

from __future__ import annotations

from functools import partial

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.serving.pages.configz import Configz
from trio_sched.daemon.serving.pages.debug_flags import DebugFlags
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.health import PING, Check, HealthEndpoint, passes
from trio_sched.daemon.serving.pages.live.live_pages import LivePages
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving.pages.pages import MetricsHandler
from trio_sched.daemon.serving.pages.profiles import Profiles
from trio_sched.daemon.serving.pages.routes import Routes
from trio_sched.daemon.serving.pages.scheduler_pages import SchedulerPages
from trio_sched.daemon.serving.pages.z_pages import flagz, statusz
from trio_sched.daemon.serving_settings import ServingSettings


def build_routes(
    settings: ServingSettings, assembly: Assembly, liveness: Liveness, live: LivePages | None = None
) -> Routes:
    """The routes to everything that is served.

    Args:
        settings: what the flags say.
        assembly: the daemon.
        liveness: whether it makes progress.
        live: the live page; None: there is none.
    """
    config, gates = assembly.settings.config, assembly.settings.gates
    routes = Routes()
    for endpoint in _health(assembly, liveness):
        routes.exact.update(endpoint.handlers())
    routes.exact["/configz"] = Configz(lambda: assembly.settings.config)
    pages = assembly.metrics.pages
    routes.exact["/metrics"] = MetricsHandler(pages.metrics)
    routes.exact["/metrics/resources"] = MetricsHandler(
        pages.resources,
        lambda: assembly.schedule_one.is_running,  # kube-scheduler shows them on the leader only
    )
    routes.exact["/metrics/slis"] = MetricsHandler(pages.slis)
    if gates.features.component_flagz:
        routes.exact["/flagz"] = flagz(settings.flags)
    if gates.features.component_statusz:
        routes.exact["/statusz"] = statusz(
            gates.binary_version,
            gates.version_text,
            lambda: {str(kind): why for kind, why in assembly.watches.unwatched.items()},
        )
    explain_page = ExplainPage(assembly, liveness.attempts_per_second) if live is None else live.explain_page
    routes.exact.update(SchedulerPages(assembly, explain_page).handlers())
    if live is not None:
        routes.exact.update(live.handlers())
    if config.enable_profiling:
        for debug in (Profiles(assembly.blocking_hooks.hook_times), DebugFlags(assembly.plugin_trace)):
            routes.exact.update(debug.handlers())
            routes.prefixes.update(debug.prefix_handlers())
    return routes


def _health(assembly: Assembly, liveness: Liveness) -> tuple[HealthEndpoint, ...]:
    # Nothing that kube-scheduler's own check of the election looks at can fail: see /livez for what can.
    elects = assembly.settings.config.leader_election.leader_elect
    election = (Check("leaderElection", passes),) if elects else ()
    ready = (
        Check("shutdown", lambda: "process is shutting down" if assembly.ending.is_set() else ""),
        Check("sched-handler-sync", lambda: "" if assembly.synced.is_set() else "handlers are not fully synchronized"),
    )
    endpoint = partial(HealthEndpoint, record=assembly.metrics.pages.record_check)
    return (
        endpoint("healthz", election or (PING,)),
        endpoint("livez", (PING, *liveness.checks())),
        endpoint("readyz", (*election, *ready)),
    )
