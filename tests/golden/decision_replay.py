"""Replays recorded decisions: every plugin on its own, and the whole cycle of every pod.

Two things about the recordings that their README does not say: pods that have run their course (phase Succeeded or
Failed) but sit on a node do count there; and an empty ``nodeSelector: {}`` got lost in the JSON, which shows in
NodeAffinity's PreFilter (see `_lost_empty_selector`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import trio
from attrs import evolve
from comparison import Comparison, missing
from golden_objects import node_of, object_of, pod_of
from golden_profiles import ReplayHandle, profiles_of

from trio_sched.daemon.hooks.hook_calls import run_steps
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.filtering import run_filters, run_pre_filters
from trio_sched.engine.evaluation.hook_steps import post_filter_steps
from trio_sched.engine.evaluation.host_selection import best_positions
from trio_sched.engine.evaluation.reservation import run_reserve, run_unreserve
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle
from trio_sched.engine.hooks.bound_hooks import FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_normalize_score, call_score
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod_requests import ResourceOptions, pod_resources
from trio_sched.plugin_api import SKIP, CycleState, NodeColumns, NodeStatuses, Pod, PreFilterResult, Status
from trio_sched.plugin_api.fit_error import fit_error
from trio_sched.plugin_api.preemption import best_candidates
from trio_sched.plugin_api.status import Code
from trio_sched.snapshot.devices.device_table import KINDS as DEVICE_KINDS
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo


class CaseReplay:
    """One case: a cluster, and pods that are scheduled one after the other."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        gates = case.get("featureGates") or {}
        self.options = ResourceOptions(
            pod_level=gates.get("PodLevelResources", True),
            pod_level_resize=gates.get("InPlacePodLevelResourcesVerticalScaling", True),
        )
        self.others: dict[str, list[Any]] = {}
        for recorded in case["objects"]:
            if recorded["kind"] not in ("Node", "Pod"):
                self.others.setdefault(recorded["kind"], []).append(object_of(recorded))
        self.handles: dict[str, ReplayHandle] = {}
        self.profiles = profiles_of(case, self.others, self.handles)
        self.table = NodeTable()
        for kind in DEVICE_KINDS:
            for one in self.others.get(kind, ()):
                self.table.devices.put(one)
        for handle in self.handles.values():
            handle.table = self.table
        self.pods: dict[str, Pod] = {}
        """Running and nominated pods by namespace/name."""
        for recorded in case["objects"]:
            if recorded["kind"] == "Node":
                self.table.add_node(node_of(recorded))
        for recorded in case["objects"]:
            if recorded["kind"] == "Pod":
                self._add_pod(pod_of(recorded))

    def _add_pod(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        row = self.table.row_of.get(pod.node_name)
        if row is not None:
            self.table.add_pod(row, PodInfo(pod, pod_resources(pod, self.options)))

    def _remove_pod(self, key: str) -> None:
        pod = self.pods.pop(key)
        row = self.table.row_of.get(pod.node_name)
        if row is not None and pod.uid in self.table.pods[row]:
            self.table.remove_pod(row, pod.uid)

    def _nominated_for(self, pod: Pod) -> dict[str, list[PodInfo]]:
        nominated: dict[str, list[PodInfo]] = {}
        for other in self.pods.values():
            if other.node_name or not other.nominated_node_name or other.uid == pod.uid:
                continue
            if other.priority >= pod.priority and other.nominated_node_name in self.table.row_of:
                placed = PodInfo(other, pod_resources(other, self.options))
                nominated.setdefault(other.nominated_node_name, []).append(placed)
        return nominated

    # --- the sequence -----------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[Comparison]:
        placed = 0
        for recorded, expected in zip(self.case["pods"], self.case["expect"], strict=True):
            where = f"{self.case['name']} pod {expected['pod']}"
            for compared in self._compare_pod(recorded, expected):
                yield evolve(compared, detail=f"{where}: {compared.detail}")
            for compared in self._compare_reserve(recorded, expected):
                yield evolve(compared, detail=f"{where}: {compared.detail}")
            if expected.get("placed"):
                self._place(recorded, expected["placed"], placed)
                placed += 1
            elif expected.get("cycle"):
                self._leave_pending(recorded, expected["cycle"].get("postFilter") or {})
            for update in expected.get("updates") or ():
                self._apply(update)

    def _compare_pod(self, recorded: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Comparison]:
        pod = pod_of(recorded)
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            return
        yield from self._compare_pre_enqueue(profile, pod, expected.get("preEnqueue") or {})
        for plugin, wanted in (expected.get("plugins") or {}).items():
            if plugin in profile.plugins:
                feasible = (expected.get("cycle") or {}).get("feasible") or []
                differences = list(self._compare_plugin(profile, plugin, pod, wanted, feasible))
                yield Comparison(plugin, not differences, "; ".join(differences))
            else:
                yield missing(plugin, "recorded answers")
        yield from self._compare_cycles(profile, recorded, pod, expected)

    def _compare_cycles(
        self, profile: Profile, recorded: Mapping[str, Any], pod: Pod, expected: Mapping[str, Any]
    ) -> Iterator[Comparison]:
        cycle = expected.get("cycle")
        if cycle is None:
            return
        yield from self._compare_cycle(profile, pod, cycle)
        nominated_node = (cycle.get("postFilter") or {}).get("nominatedNode")
        if nominated_node:
            for victim in cycle["postFilter"].get("victims") or ():
                self._remove_pod(victim)
            retried = dict(recorded)
            retried["status"] = {**(recorded.get("status") or {}), "nominatedNodeName": nominated_node}
            if "retry" in expected:
                yield from self._compare_cycle(profile, pod_of(retried), expected["retry"])

    def _compare_reserve(self, recorded: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Comparison]:
        """What the plugins reserve when the node is chosen, and what DynamicResources then writes.

        What the others have set aside is given back at once; what became of it is recorded as ``updates``.
        """
        pod = pod_of(recorded)
        best = ((expected.get("retry") or expected.get("cycle") or {}).get("best") or [""])[0]
        profile, node_name = self.profiles.get(pod.scheduler_name), expected.get("placed") or best
        if profile is None:
            return
        if not node_name:
            yield from self._compare_written(profile.name, expected)
            return
        state = CycleState()
        nodes = NodeColumns(self.table)
        try:
            run_pre_filters(profile.pre_filter, pod, nodes, state)
            for hook in profile.filter:
                if hook.plugin == "DynamicResources" and hook.plugin not in state.skip_filter:
                    row = self.table.row_of[node_name]
                    hook.function(pod, nodes.take(slice(row, row + 1)), state)
            refused = run_reserve(profile, pod, node_name, state)
        except HookFailed as failed:
            yield Comparison("reserve", False, f"reserve: {failed.status.message}")
            return
        problem = self._pre_bind_devices(profile, pod, node_name, state) if refused is None else None
        yield from self._compare_written(profile.name, expected)
        failures = PluginFailures()
        run_unreserve_of_others(profile, pod, node_name, state, failures)
        wanted = {key: value for key, value in (expected.get("reserve") or {}).items() if key != "plugin"}
        actual = _status(refused.status) if refused is not None else {}
        agreed = actual == wanted and not failures and problem is None
        yield Comparison("reserve", agreed, f"reserve: expected {wanted}, got {actual} {failures.drain()} {problem}")

    def _pre_bind_devices(self, profile: Profile, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        plugin = profile.plugins.get("DynamicResources")
        if plugin is None or plugin.pre_bind_pre_flight(pod, node_name, state) is SKIP:
            return None
        return trio.run(plugin.pre_bind, pod, node_name, state)

    def _compare_written(self, profile_name: str, expected: Mapping[str, Any]) -> Iterator[Comparison]:
        """Compare the claims that were written, and forget them: the recorded ones are taken over."""
        handle = self.handles[profile_name]
        written, handle.written = handle.written, {}
        wanted = {}
        for update in expected.get("updates") or ():
            if update["kind"] == "ResourceClaim":
                namespace, _slash, name = (update.get("deleted") or "").rpartition("/")
                metadata = update.get("metadata") or {"namespace": namespace, "name": name}
                body = None if update.get("deleted") else _comparable(update)
                wanted["ResourceClaim", metadata.get("namespace", ""), metadata["name"]] = body
        actual = {key: None if body is None else _comparable(body) for key, body in written.items()}
        if actual or wanted:
            yield Comparison("updates", actual == wanted, f"updates: expected {wanted}, got {actual}")

    def _place(self, recorded: Mapping[str, Any], node_name: str, minutes: int) -> None:
        status = {k: v for k, v in (recorded.get("status") or {}).items() if k != "nominatedNodeName"}
        started = f"2026-03-01T{minutes // 60:02}:{minutes % 60:02}:00Z"
        pod = {
            **recorded,
            "spec": {**recorded["spec"], "nodeName": node_name},
            "status": {**status, "phase": "Running", "startTime": started},
        }
        self._add_pod(pod_of(pod))

    def _leave_pending(self, recorded: Mapping[str, Any], post_filter: Mapping[str, Any]) -> None:
        """A pod that was not placed keeps its promise of a node, unless PostFilter took it back."""
        pod = pod_of(recorded)
        if pod.nominated_node_name and post_filter.get("nominatedNode") != "":
            self._add_pod(pod)

    def _apply(self, update: Mapping[str, Any]) -> None:
        if update.get("kind") == "Pod" and not update.get("deleted"):
            pod = pod_of(update)
            if pod.key in self.pods:
                self._remove_pod(pod.key)
            self._add_pod(pod)
        elif update.get("kind") != "Pod":
            self._apply_to_others(update)

    def _apply_to_others(self, update: Mapping[str, Any]) -> None:
        """An object of another kind was created, changed or removed."""
        known = self.others.setdefault(update["kind"], [])
        if update.get("deleted"):
            namespace, _slash, name = update["deleted"].rpartition("/")
            new = None
        else:
            new = object_of(update)
            namespace, name = new.metadata.namespace, new.metadata.name
        known[:] = [one for one in known if (one.metadata.namespace, one.metadata.name) != (namespace, name)]
        if new is not None:
            known.append(new)
        if update["kind"] in DEVICE_KINDS:
            self.table.devices.remove(update["kind"], name, namespace)
            if new is not None:
                self.table.devices.put(new)
        for handle in self.handles.values():
            handle.changes += 1

    # --- one plugin -------------------------------------------------------------------------------------------------

    def _compare_pre_enqueue(self, profile: Profile, pod: Pod, expected: Mapping[str, Any]) -> Iterator[Comparison]:
        for hook in profile.pre_enqueue:
            status = hook.function(pod)
            actual = None if status is None else _status(status)
            wanted = expected.get(hook.plugin)
            yield Comparison(hook.plugin, actual == wanted, f"preEnqueue: expected {wanted}, got {actual}")
        for plugin in expected:
            if plugin not in profile.plugins:
                yield missing(plugin, "preEnqueue")

    def _compare_plugin(
        self, profile: Profile, plugin: str, pod: Pod, expected: Mapping[str, Any], feasible: Sequence[str]
    ) -> Iterator[str]:
        state = CycleState()
        nodes = NodeColumns(self.table)
        if "preFilter" in expected:
            actual = self._pre_filter(profile, plugin, pod, state)
            if actual != expected["preFilter"] and not _lost_empty_selector(plugin, pod, expected, actual):
                yield f"preFilter: expected {expected['preFilter']}, got {actual}"
        if "filter" in expected:
            filters = [f for f in profile.filter if f.plugin == plugin]
            failed = {name: _status(status) for name, status in _filtered_alone(filters, pod, nodes, state).items()}
            yield from _differences("filter", expected["filter"], failed)
        if not any(key in expected for key in ("preScore", "score", "scoreError", "preScoreError")):
            return
        positions = np.array([self.table.row_of[name] for name in feasible], dtype=np.intp)
        subset = nodes.take(positions)
        cycle_state = self._state_after_filters(profile, pod)
        yield from self._compare_scores(profile, plugin, pod, expected, subset, cycle_state)

    def _pre_filter(self, profile: Profile, plugin: str, pod: Pod, state: CycleState) -> dict[str, Any]:
        (hook,) = [c for c in profile.pre_filter if c.plugin == plugin]
        answer = hook.function(pod, NodeColumns(self.table), state)
        names = None
        if isinstance(answer, PreFilterResult):
            names = None if answer.node_names is None else sorted(answer.node_names)
            answer = None
        return {**_status(answer), "nodeNames": names}

    def _state_after_filters(self, profile: Profile, pod: Pod) -> CycleState:
        state, nodes = CycleState(), NodeColumns(self.table)
        run_pre_filters(profile.pre_filter, pod, nodes, state)
        for hook in profile.filter:
            if hook.plugin == "DynamicResources" and hook.plugin not in state.skip_filter:
                hook.function(pod, nodes, state)  # its scores are about what its filter has found
        return state

    def _compare_scores(
        self, profile: Profile, plugin: str, pod: Pod, expected: Mapping[str, Any], nodes: Any, state: CycleState
    ) -> Iterator[str]:
        for hook in profile.pre_score:
            if hook.plugin == plugin and "preScore" in expected:
                status = hook.function(pod, nodes, state)
                if _code(status).label != expected["preScore"]:
                    yield f"preScore: expected {expected['preScore']}, got {_code(status).label}"
                if _code(status) != Code.SUCCESS:
                    return
        for scorer in profile.score:
            if scorer.plugin != plugin or "score" not in expected:
                continue
            raw = call_score(scorer, pod, nodes, state)
            yield from _differences("score", expected["score"], dict(zip(nodes.names, raw.tolist(), strict=True)))
            final = call_normalize_score(scorer, pod, raw.copy(), state) if scorer.normalize is not None else raw
            actual = dict(zip(nodes.names, final.tolist(), strict=True))
            yield from _differences("normalized", expected["normalized"], actual)
            if scorer.weight != expected["weight"]:
                yield f"weight: expected {expected['weight']}, got {scorer.weight}"

    # --- the whole cycle --------------------------------------------------------------------------------------------

    def _compare_cycle(self, profile: Profile, pod: Pod, expected: Mapping[str, Any]) -> Iterator[Comparison]:
        state = CycleState()
        cycle = SchedulingCycle(profile, self.table, pod, self._nominated_for(pod), state)
        differences: list[str] = []
        found: FeasibleNodes | SchedulingFailure | None = None
        try:
            found = cycle.find_feasible()
            if isinstance(found, SchedulingFailure):
                differences.extend(self._compare_unplaced(found, expected))
            else:
                differences.extend(self._compare_feasible(cycle, found, expected))
        except HookFailed as failed:
            if failed.status.message not in expected.get("errorAnyOf", ()):
                wanted = expected.get("errorAnyOf", "no error")
                differences.append(f"error: expected {wanted}, got {failed.status.message!r}")
        yield Comparison("cycle", not differences, f"cycle: {'; '.join(differences)}")
        if "postFilter" in expected:
            problems = [] if found is None else list(self._compare_post_filter(profile, pod, found, state, expected))
            yield Comparison("postFilter", not problems, f"postFilter: {'; '.join(problems)}")

    def _compare_unplaced(self, found: SchedulingFailure, expected: Mapping[str, Any]) -> Iterator[str]:
        if expected.get("feasible"):
            yield f"feasible: expected {expected['feasible']}, got none ({found.message})"
            return
        diagnosis = found.diagnosis
        if diagnosis is None:  # no nodes at all, which is recorded among the errors
            if found.message not in expected.get("errorAnyOf", ()):
                yield f"error: expected {expected.get('errorAnyOf')}, got {found.message!r}"
            return
        if "errorAnyOf" in expected:
            yield f"expected an error {expected['errorAnyOf']}"
            return
        yield from _compare_failed(self.table.names, diagnosis.statuses, expected)
        if fit_error(diagnosis) != expected.get("fitErrorBeforePostFilter"):
            yield f"fitError: expected {expected.get('fitErrorBeforePostFilter')!r}, got {fit_error(diagnosis)!r}"
        for key, actual in (
            ("unschedulablePlugins", diagnosis.unschedulable_plugins),
            ("pendingPlugins", diagnosis.pending_plugins),
        ):
            if sorted(actual) != sorted(expected.get(key) or ()):
                yield f"{key}: expected {expected.get(key)}, got {sorted(actual)}"
        if diagnosis.pre_filter_message != expected.get("preFilterMsg", ""):
            yield f"preFilterMsg: expected {expected.get('preFilterMsg')!r}, got {diagnosis.pre_filter_message!r}"

    def _compare_post_filter(
        self,
        profile: Profile,
        pod: Pod,
        found: FeasibleNodes | SchedulingFailure,
        state: CycleState,
        expected: Mapping[str, Any],
    ) -> Iterator[str]:
        if isinstance(found, FeasibleNodes) or found.diagnosis is None:
            yield "PostFilter was not reached"
            return
        wanted = expected["postFilter"]
        handle = self.handles[pod.scheduler_name]
        handle.table, handle.current, handle.tried = self.table, pod, None
        handle.nominated = self._nominated_for(pod)
        steps = post_filter_steps(profile.post_filter, pod, evolve(found, state=state), PluginFailures())
        outcome = trio.run(run_steps, steps)
        message = "" if outcome.diagnosis is None else outcome.diagnosis.post_filter_message
        if message != wanted.get("message", ""):
            yield f"message: expected {wanted.get('message')!r}, got {message!r}"
        if outcome.message != expected["fitError"]:
            yield f"fitError: expected {expected['fitError']!r}, got {outcome.message!r}"
        nominated = wanted.get("nominatedNode")
        if bool(nominated) != bool(outcome.nominated_node_name) or (nominated is None) != (
            outcome.nominated_node_name is None
        ):
            yield f"nominatedNode: expected {nominated!r}, got {outcome.nominated_node_name!r}"
        if (handle.tried is not None) != ("candidates" in wanted):
            yield f"expected {'a' if 'candidates' in wanted else 'no'} dry run"
        if handle.tried is None or "candidates" not in wanted:
            return
        tried = handle.tried
        candidates = {
            name: {"victims": [victim.key for victim in one.pods], "numPDBViolations": one.pdb_violations}
            for name, one in tried.candidates.items()
        }
        yield from _differences("candidates", wanted["candidates"], candidates)
        failed = {name: _status(status) for name, status in tried.statuses.items()}
        yield from _differences("dryRunFailed", _without_plugin(wanted.get("dryRunFailed") or {}), failed)
        if nominated and "tied" in wanted:
            best = sorted(best_candidates(tried.candidates))
            if best != wanted["tied"]:
                yield f"tied: expected {wanted['tied']}, got {best}"
            if outcome.nominated_node_name not in best:
                yield f"nominated {outcome.nominated_node_name}, which is none of the best {best}"

    def _compare_feasible(
        self, cycle: SchedulingCycle, found: FeasibleNodes, expected: Mapping[str, Any]
    ) -> Iterator[str]:
        names = found.nodes.names
        if "errorAnyOf" in expected:
            yield f"expected an error {expected['errorAnyOf']}"
            return
        if sorted(names) != expected.get("feasible"):
            yield f"feasible: expected {expected.get('feasible')}, got {sorted(names)}"
            return
        # With one node in the cluster there is no telling, and the recording says nothing.
        if self.table.count > 1 and found.only_nominated != expected.get("nominatedNodeOnly", False):
            yield f"nominatedNodeOnly: expected {expected.get('nominatedNodeOnly')}"
        if not found.only_nominated:
            feasible = set(names)
            yield from _compare_failed([n for n in self.table.names if n not in feasible], found.statuses, expected)
        if expected.get("noScoring") or len(names) == 1:
            return
        scores = cycle.prioritize(found.nodes)
        totals = dict(zip(names, scores.totals.tolist(), strict=True))
        yield from _differences("totals", expected["totals"] or {}, totals)
        best = sorted(names[i] for i in best_positions(scores.totals))
        if best != expected["best"]:
            yield f"best: expected {expected['best']}, got {best}"


def run_unreserve_of_others(
    profile: Profile, pod: Pod, node_name: str, state: CycleState, failures: PluginFailures
) -> None:
    """Unreserve all but what DynamicResources has written."""
    others = [hook for hook in profile.unreserve if hook.plugin != "DynamicResources"]
    run_unreserve(evolve(profile, unreserve=others), pod, node_name, state, failures)


def _comparable(claim: Mapping[str, Any]) -> dict[str, Any]:
    """A claim without what its recording does not have: times, versions, UIDs of what was created, ids of shares."""
    body = msgspec.to_builtins(object_of({**claim, "kind": "ResourceClaim"}))
    metadata = body["metadata"]
    for name in ("resourceVersion", "uid", "creationTimestamp"):
        metadata.pop(name, None)
    allocation = body.get("status", {}).get("allocation") or {}
    allocation.pop("allocationTimestamp", None)
    for result in (allocation.get("devices") or {}).get("results") or ():
        if "shareID" in result:
            result["shareID"] = "share"
    return body


def _filtered_alone(
    filters: Sequence[FilterHook], pod: Pod, nodes: NodeColumns, state: CycleState
) -> dict[str, Status]:
    """Node name → status as `run_filters` finds it, but an error on a node is recorded as the status of that node."""
    if any(hook.per_node for hook in filters):
        return run_filters(filters, pod, nodes, state).statuses()
    statuses: dict[str, Status] = {}
    for hook in filters:
        verdicts = hook.function(pod, nodes, state)
        for position in np.flatnonzero(verdicts.codes).tolist():
            statuses.setdefault(nodes.name(position), verdicts.explain(verdicts.codes[position].item()))
    return statuses


def _compare_failed(names: Iterable[str], statuses: NodeStatuses, expected: Mapping[str, Any]) -> Iterator[str]:
    by_node = statuses.by_node()
    given = {name: by_node.get(name, statuses.absent) for name in names}
    failed = {name: _status(status) | {"plugin": status.plugin} for name, status in given.items()}
    yield from _differences("failed", _with_plugin(expected["failed"]), failed)


def _code(status: Status | None) -> Code:
    return Code.SUCCESS if status is None else status.code


def _status(status: Status | None) -> dict[str, Any]:
    reasons = [] if status is None else sorted(status.all_reasons)
    return {"code": _code(status).label, "reasons": reasons}


def _lost_empty_selector(plugin: str, pod: Pod, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
    """Whether all that differs is an empty ``nodeSelector`` that the recorded pod had and its JSON has not.

    With ``{}`` NodeAffinity has something to do (and lets every node pass), without it has not.
    """
    return (
        plugin == "NodeAffinity"
        and pod.spec.node_selector is None
        and actual["code"] == "Skip"
        and expected["preFilter"] == {"code": "Success", "nodeNames": None, "reasons": []}
        and expected.get("filter") == {}
    )


def _without_plugin(failed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"code": status["code"], "reasons": status["reasons"]} for name, status in failed.items()}


def _with_plugin(failed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**status, "plugin": status.get("plugin") or ""} for name, status in failed.items()}


def _differences(what: str, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            yield f"{what}[{name}]: expected {expected.get(name)}, got {actual.get(name)}"
            return
