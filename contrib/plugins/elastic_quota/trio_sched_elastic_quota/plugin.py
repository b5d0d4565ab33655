"""The plugin: admits pods within the quota of their namespace, and takes back what others have borrowed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Final

import trio
from attrs import field, frozen, validators

from trio_sched.plugin_api import (
    Action,
    Code,
    CycleState,
    Diagnosis,
    Duration,
    EventRegistration,
    Handle,
    Hint,
    Input,
    NodeColumns,
    ObjectGone,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    hookimpl,
    on,
    unresolvable,
)
from trio_sched_elastic_quota.resource import PODS, QUOTA, Limits, Quota, requested, written
from trio_sched_elastic_quota.usage import CLAIM_SECONDS, Claim, Reclaimable, Shared, used

NAME: Final = "ElasticQuota"
_RETRY_SECONDS: Final = 30.0
_CANDIDATES: Final = 20
"""How many nodes without violated budgets are compared."""


@frozen(kw_only=True)
class ElasticQuotaArgs:
    """What ``pluginConfig`` says."""

    reclaim: bool = True
    """Whether pods of namespaces that have borrowed are evicted for pods that are guaranteed the room."""
    status_interval: Duration = field(default=10.0, validator=validators.ge(1.0))
    """How often the status of the quotas is written, and the metrics are set."""


class ElasticQuota:
    """Quotas by namespace: a guaranteed minimum that others may borrow, and a maximum."""

    name: ClassVar[str] = NAME
    Args: ClassVar[type[ElasticQuotaArgs]] = ElasticQuotaArgs
    depends_on: ClassVar[frozenset[Input]] = frozenset()
    watches: ClassVar = (QUOTA, "PodDisruptionBudget")
    writes: ClassVar = {QUOTA.status: ("patch",), "Pod": ("delete",)}
    run_once_per_process: ClassVar[bool] = True
    run_on_leader_only: ClassVar[bool] = True

    def __init__(self, args: ElasticQuotaArgs, handle: Handle) -> None:
        self._args, self._handle = args, handle
        self._shared = handle.shared(Shared)
        self._in_background = handle.feature_enabled("SchedulerAsyncPreemption")
        self._told: set[str] = set()
        metrics, labels = handle.metrics, ("namespace", "resource")
        self._gauges = {
            what: metrics.gauge(what, f"{text}, in cores, bytes or numbers.", labels)
            for what, text in (
                ("used", "What the pods of a namespace request"),
                ("min", "What the namespace is guaranteed"),
                ("max", "What the namespace may use at most"),
                ("borrowed", "What the namespace uses beyond what it is guaranteed"),
            )
        }
        self._rejected = metrics.counter("rejections_total", "Attempts that a quota has ended.", ["namespace"])
        self._reclaimed = metrics.counter(
            "reclaimed_pods_total", "Pods that were evicted because their namespace had borrowed.", ["namespace"]
        )

    # --- within the quota? --------------------------------------------------------------------------------------------

    @hookimpl
    def sign(self, pod: Pod) -> Hashable | None:
        """Pods of namespaces with a quota are judged one by one: it depends on all pods of the cluster."""
        return None if pod.namespace in self._shared.look(self._handle) else ""

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Reject the pod if it is beyond the maximum, or if nobody lends what is beyond the minimum.

        Evicting pods of lower priority on some node would not help, so preemption must not try.
        """
        reason = self._refusal(pod, nodes)
        if not reason:
            return None
        self._rejected.inc(namespace=pod.namespace)
        if self._shared.claims:  # no event tells that one of them has ended without being used
            self._handle.retry_after(pod, CLAIM_SECONDS)
        return unresolvable(reason)

    def _refusal(self, pod: Pod, nodes: NodeColumns, *, is_counted: bool = False) -> str:
        """Why the quotas do not admit *pod*; "" if they do. *is_counted*: it is among the pods on *nodes*."""
        all_limits = self._shared.look(self._handle)
        limits = all_limits.get(pod.namespace)
        if limits is None or limits.problem:
            return "" if limits is None else limits.problem
        for resource, amount in requested(pod).items():
            if not limits.limits(resource):
                continue
            others = used(nodes, limits, resource) - (amount if is_counted else 0)
            most = limits.maximum.get(resource)
            if most is not None and others + amount > most:
                return _too_much(resource, others, amount, f"at most {written(resource, most)} are allowed", limits)
            guaranteed = limits.guaranteed(resource)
            if others + amount > guaranteed:
                lent = self._lendable(pod, resource, all_limits, nodes) + (amount if is_counted else 0)
                if amount > lent:
                    least, left = written(resource, guaranteed), written(resource, max(0, lent))
                    what = f"{least} are guaranteed, and others have {left} to lend"
                    return _too_much(resource, others, amount, what, limits)
        return ""

    def _lendable(self, pod: Pod, resource: str, all_limits: Mapping[str, Limits], nodes: NodeColumns) -> int:
        """How much of all guarantees together is not used, nor kept for pods for which room is being made."""
        left = -self._shared.claimed(self._handle, resource, without=pod)
        for limits in all_limits.values():
            if limits.limits(resource):
                left += limits.guaranteed(resource) - used(nodes, limits, resource)
        return left

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Look once more: with extenders, other pods may have been placed since pre_filter."""
        reason = self._refusal(pod, self._handle.nodes, is_counted=True)
        if reason:
            return unresolvable(reason)
        self._shared.claims.pop(pod.uid, None)
        return None

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Pods end, or request less; quotas change."""
        return [
            on(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._pod_changed),
            on(QUOTA, Action.ADD | Action.UPDATE | Action.DELETE, self._quota_changed),
        ]

    def _pod_changed(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        other = new or old
        if other is None or other.namespace not in self._shared.look(self._handle):
            return Hint.SKIP
        return self._hint(pod)

    def _quota_changed(self, pod: Pod, old: Quota | None, new: Quota | None) -> Hint:
        return self._hint(pod)

    def _hint(self, pod: Pod) -> Hint:
        return Hint.SKIP if self._refusal(pod, self._handle.nodes) else Hint.QUEUE

    # --- taking back --------------------------------------------------------------------------------------------------

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult | None:
        """Evict pods of namespaces that have borrowed, if the namespace of *pod* is guaranteed what it requests."""
        handle = self._handle
        all_limits = self._shared.look(handle)
        limits = all_limits.get(pod.namespace)
        if limits is None or limits.problem or not self._args.reclaim or pod.spec.preemption_policy == "Never":
            return None
        amounts = requested(pod)
        nodes = handle.nodes
        governed = [resource for resource in amounts if limits.limits(resource)]
        if not any(resource != PODS or limits.guaranteed(PODS) for resource in governed):
            return None
        if any(used(nodes, limits, one) + amounts[one] > limits.guaranteed(one) for one in governed):
            return None
        if self._is_under_way(pod, nodes):
            return PostFilterResult(unresolvable("elastic quota: waiting for evicted pods to end"))
        # No event tells that others borrow more by now, or that a budget allows more disruptions.
        handle.retry_after(pod, _RETRY_SECONDS)
        reclaimable = Reclaimable(pod, all_limits, handle, self._shared)
        statuses, absent = diagnosis.statuses.by_node(), diagnosis.statuses.absent
        names = [name for name in nodes.names if statuses.get(name, absent).code == Code.UNSCHEDULABLE]
        if not reclaimable or not names:
            return None
        found = handle.dry_run_preemption(pod, state, names, _CANDIDATES, evictable=reclaimable.on_node)
        candidates = {name: victims for name, victims in found.candidates.items() if not victims.pdb_violations}
        if candidates:
            candidates = dict(await handle.process_preemption(pod, candidates))
        if not candidates:
            return None
        node_name = min(candidates, key=lambda name: candidates[name].cost)
        victims = [one for one in candidates[node_name].pods if one.uid not in reclaimable.leaving]
        until = handle.now() + CLAIM_SECONDS
        self._shared.claims[pod.uid] = Claim(pod, amounts, until)
        self._shared.evicted.update({victim.uid: victim for victim in victims})
        refused = await handle.preempt(pod, victims, node_name, NAME, in_background=self._in_background)
        if refused is not None:
            del self._shared.claims[pod.uid]
            for victim in victims:
                self._shared.evicted.pop(victim.uid, None)
            return PostFilterResult(refused)
        for victim in victims:
            self._reclaimed.inc(namespace=victim.namespace)
            text = f"Namespace {victim.namespace} uses more than it is guaranteed; {pod.key} is guaranteed the room"
            handle.record_event(victim, "Normal", "QuotaReclaimed", "Preempting", text)
        handle.log.info("%d pods on node %s are evicted for %s: borrowed room", len(victims), node_name, pod.key)
        return PostFilterResult(None, node_name)

    def _is_under_way(self, pod: Pod, nodes: NodeColumns) -> bool:
        """Whether pods that were evicted for *pod* are still there."""
        nominated = self._handle.nominated_node(pod)
        if self._handle.is_preempting_for(pod):
            return True
        position = nodes.position(nominated) if nominated else None
        if position is None:
            return False
        return any(one.metadata.deletion_timestamp is not None for one in nodes.node(position).pods)

    # --- what others see ----------------------------------------------------------------------------------------------

    @hookimpl
    async def run(self) -> None:
        """Write the status of the quotas, and set the metrics."""
        while True:
            await self._publish()
            await trio.sleep(self._args.status_interval)

    async def _publish(self) -> None:
        limits = dict(self._shared.look(self._handle))
        for gauge in self._gauges.values():
            gauge.clear()
        for one in limits.values():
            status = self._measure(one)
            await self._write(one.quota, status)
        for quota in list(self._shared.ignored):
            counts = limits[quota.metadata.namespace].quota.metadata.name if quota.metadata.namespace in limits else ""
            message = f"no effect: {counts} is older, and of several in a namespace the oldest counts"
            if quota.metadata.uid not in self._told:
                self._told.add(quota.metadata.uid)
                self._handle.record_event(quota, "Warning", "QuotaIgnored", "Scheduling", message)
            await self._write(quota, {"used": None, "borrowed": None, "message": message})
        self._told &= {quota.metadata.uid for quota in self._shared.ignored}

    def _measure(self, limits: Limits) -> dict[str, Any]:
        nodes, uses, borrowed = self._handle.nodes, {}, {}
        for resource in limits.resources:
            amount, guaranteed = used(nodes, limits, resource), limits.guaranteed(resource)
            uses[resource] = written(resource, amount)
            if amount > guaranteed:
                borrowed[resource] = written(resource, amount - guaranteed)
            values = {"used": amount, "min": guaranteed, "borrowed": max(0, amount - guaranteed)}
            if resource in limits.maximum:
                values["max"] = limits.maximum[resource]
            for what, value in values.items():
                in_units = value / 1000 if resource == "cpu" else value
                self._gauges[what].set(in_units, namespace=limits.namespace, resource=resource)
        return {"used": uses or None, "borrowed": borrowed or None, "message": limits.problem or None}

    async def _write(self, quota: Quota, status: Mapping[str, Any]) -> None:
        """Write *status* unless the quota has it already; None stands for nothing."""
        before = quota.status
        now: dict[str, Any] = {"used": before.used, "borrowed": before.borrowed, "message": before.message}
        change: dict[str, Any] = {}
        for part, value in status.items():
            if (value or None) != (now[part] or None):
                gone = dict.fromkeys(now[part]) if isinstance(now[part], dict) and value else {}
                change[part] = {**gone, **value} if isinstance(value, dict) else value
        if not change:
            return
        meta = quota.metadata
        patch = {"metadata": {"uid": meta.uid}, "status": change}
        try:
            await self._handle.patch(QUOTA, meta.name, patch, namespace=meta.namespace, subresource="status")
        except ObjectGone:
            pass
        except Exception as problem:
            self._handle.log.warning("cannot write the status of %s/%s: %s", meta.namespace, meta.name, problem)


def _too_much(resource: str, used_amount: int, amount: int, what: str, limits: Limits) -> str:
    meta = limits.quota.metadata
    uses, asks = written(resource, used_amount), written(resource, amount)
    return f"ElasticQuota {meta.name}: {uses} of {resource} used, {asks} requested, but {what}"
