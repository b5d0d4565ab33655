"""``/debug/scheduler``: what the scheduler has in memory, as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.daemon.serving.limits import MAX_PAGE_ITEMS, MAX_PROFILE_SECONDS
from trio_sched.daemon.serving.messages import HTML, JSON, NOSNIFF, Handler, Request, Response, refusal
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.page_lists import listed
from trio_sched.daemon.serving.pages.queue_pages import PodNotShown, QueuePages, waits_on_permit
from trio_sched.daemon.serving.status_bodies import indented_json
from trio_sched.daemon.slices import in_slices
from trio_sched.engine.cache import CachedPod
from trio_sched.engine.hooks.hook_times import HookTimes
from trio_sched.engine.shadow.judgement import Judgement
from trio_sched.plugin_api.cluster_events import ClusterEvent
from trio_sched.snapshot.node_columns import NodeColumns

_ROOT = "/debug/scheduler"


@define(eq=False)
class SchedulerPages:
    """The pages; one of them is made at a time."""

    assembly: Assembly
    explain_page: ExplainPage
    _rendering: trio.Lock = field(init=False, factory=trio.Lock)
    _times: HookTimes | None = field(init=False, default=None)
    _timed: LoadedProfiles | None = field(default=None, init=False)
    """The profiles whose hooks `_times` times."""

    def handlers(self) -> Mapping[str, Handler]:
        """Handlers by exact path."""
        queue_pages = QueuePages(self.assembly)
        pages: Mapping[str, Callable[[Request], Any]] = {
            "queue": queue_pages.queue,
            "cache": self._cache,
            "waiting-pods": self._waiting_pods,
            "in-flight": self._in_flight,
            "plugins": self._plugins,
            "shadow": self._shadow,
            "shards": self._shards,
        }
        index = _index(pages)
        return {
            _ROOT: index,
            f"{_ROOT}/": index,
            f"{_ROOT}/activate": queue_pages.activate,
            f"{_ROOT}/explain": self.explain_page.explain,
            **{f"{_ROOT}/{name}": self._handler(page) for name, page in pages.items()},
        }

    def _handler(self, page: Callable[[Request], Any]) -> Handler:
        async def serve(request: Request) -> Response:
            async with self._rendering:
                try:
                    content = await page(request)
                except PodNotShown as error:
                    return refusal(str(error), error.status)
                return Response(headers=[JSON, NOSNIFF], body=indented_json(content) + b"\n")

        return serve

    async def _cache(self, _request: Request) -> dict[str, Any]:
        cache = self.assembly.scheduler.cache
        columns = NodeColumns(cache.table)
        names = list(islice(columns.names, MAX_PAGE_ITEMS))
        resources = list(columns.resource_names)
        # Copies: the columns change while the page is made.
        requested, allocatable = (column[:, : len(names)].copy() for column in (columns.requested, columns.allocatable))
        pods, allowed = (column[: len(names)].tolist() for column in (columns.pod_count, columns.allowed_pods))
        nodes = []
        async for row, name in in_slices(enumerate(names)):
            amounts = zip(requested[:, row].tolist(), allocatable[:, row].tolist(), strict=True)
            nodes.append(
                {
                    "name": name,
                    "pods": pods[row],
                    "allowedPods": allowed[row],
                    "resources": {
                        resource: {"requested": used, "allocatable": total}
                        for resource, (used, total) in zip(resources, amounts, strict=True)
                        if used or total
                    },
                }
            )
        assumed = [cached for cached in cache if cached.assumed]
        return {
            "nodes": {"count": len(columns), "items": nodes, "leftOut": len(columns) - len(nodes)},
            "podCount": len(cache),
            "assumedPods": await listed(assumed, _assumed),
        }

    async def _waiting_pods(self, _request: Request) -> dict[str, Any]:
        waiting, now = self.assembly.waiting.by_uid, trio.current_time()
        return await listed(
            waiting.values(), lambda one: {"pod": one.pod.key, "uid": one.pod.uid, **waits_on_permit(one, now)}
        )

    async def _in_flight(self, _request: Request) -> dict[str, Any]:
        assembly, in_flight = self.assembly, self.assembly.scheduler.queue.in_flight
        content = list(islice(in_flight, 2 * MAX_PAGE_ITEMS))
        pods = [{"pod": one[0], "uid": one[1]} for one in content if isinstance(one, tuple)]
        events = [str(one) for one in content if isinstance(one, ClusterEvent)]
        return {
            "pods": {"count": len(in_flight), "items": pods, "leftOut": len(in_flight) - len(pods)},
            "events": events,
            "bindsUnderWay": assembly.bind_pool.unfinished,
            "statusPatchesUnderWay": assembly.status_patch_pool.unfinished,
            "preemptionsUnderWay": assembly.preemption_executor.pool.unfinished,
        }

    async def _plugins(self, request: Request) -> dict[str, Any]:
        profiles = {
            name: {
                plugin: sorted({hook.hook for hook in profile.hooks if hook.plugin == plugin})
                for plugin in profile.plugins
            }
            for name, profile in self.assembly.scheduler.profiles.items()
        }
        text = request.parameter("seconds")
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
            return {"profiles": profiles, "hint": "add ?seconds=N to time the hooks of all plugins for so long"}
        seconds = min(int(text), MAX_PROFILE_SECONDS)
        return {"profiles": profiles, "seconds": seconds, "times": await self._time_hooks(seconds)}

    async def _shadow(self, _request: Request) -> dict[str, Any]:
        shadow = self.assembly.shadow
        if shadow is None:
            return {"hint": "this process schedules; one that is started with --shadow compares decisions"}
        newest_first = list(reversed(shadow.judgements.listed))
        return {**shadow.judgements.counted(), "notTheSame": await listed(newest_first, Judgement.as_fields)}

    async def _shards(self, _request: Request) -> dict[str, Any]:
        sharding = self.assembly.sharding
        if sharding is None:
            return {"hint": "one replica schedules at a time; with sharding in the configuration all of them do"}
        return sharding.page()

    async def _time_hooks(self, seconds: float) -> list[dict[str, Any]]:
        loaded = self.assembly.loaded
        if self._times is None or self._timed is not loaded:  # a reload has exchanged the plugins
            self._times, self._timed = HookTimes(time.perf_counter), loaded
            self._times.install(hook for hook in loaded.prepared.hooks if hook.built_in and hook.hook != "run")
        blocking = self.assembly.blocking_hooks
        before = blocking.hook_times.totals | self._times.totals
        blocking.time_for(seconds)
        self._times.switch_on()
        try:
            await trio.sleep(seconds)
        finally:
            self._times.switch_off()
        taken = {}
        for key, (total_seconds, total_calls) in (blocking.hook_times.totals | self._times.totals).items():
            seconds_before, calls_before = before.get(key, (0.0, 0))
            if total_calls > calls_before:
                taken[key] = (total_seconds - seconds_before, total_calls - calls_before)
        rows = [
            {"plugin": plugin, "hook": hook, "seconds": round(seconds_taken, 6), "calls": calls}
            for (plugin, hook), (seconds_taken, calls) in taken.items()
        ]
        return sorted(rows, key=lambda row: row["seconds"], reverse=True)


def _assumed(cached: CachedPod) -> dict[str, Any]:
    return {"pod": cached.pod.key, "uid": cached.pod.uid, "node": cached.node_name}


def _index(names: Iterable[str]) -> Handler:
    items = "".join(f'<li><a href="{_ROOT}/{name}">{name}</a>\n' for name in names)
    body = f"<html>\n<head><title>{_ROOT}</title></head>\n<body>\n<ul>\n{items}</ul>\n</body>\n</html>\n".encode()

    async def serve(_request: Request) -> Response:
        return Response(headers=[HTML, NOSNIFF], body=body)

    return serve
