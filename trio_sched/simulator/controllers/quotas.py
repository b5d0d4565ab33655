"""A simulated resource quota controller: counts again what is used when something is gone or has ended."""

from functools import partial

from attrs import define

from trio_sched.simulator.admission.quota_usage import uses_other
from trio_sched.simulator.admission.resource_quotas import QUOTAS, counted, write_status
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.storage.object_store import Change, Collection
from trio_sched.simulator.storage.resource_types import ResourceType

_REACT_SECONDS = 0.1


@define(eq=False)
class QuotaController(Controller):
    """Keeps the status of ResourceQuotas."""

    def start(self) -> None:
        """Count what there is; follow quotas and all that they may count."""
        quotas = self.server.store.collection(QUOTAS)
        for key in quotas.objects:
            self._steps.plan(self._count, key, _REACT_SECONDS)
        self.listen(QUOTAS, self._on_quota)
        for resource in self.server.state.types.storages():
            if resource.namespaced and resource.collection not in ("events", QUOTAS):
                self.listen(resource.collection, partial(self._on_object, resource, quotas))

    def _on_quota(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        before = change.previous.fields["spec"] if change.previous is not None else None
        if change.current.fields["spec"] != before:
            self._steps.plan(self._count, change.current.key, _REACT_SECONDS)

    def _on_object(self, resource: ResourceType, quotas: Collection, change: Change) -> None:
        if not quotas.objects:
            return
        before = change.previous
        ended = before is not None and is_finished(change.current.fields) and not is_finished(before.fields)
        changed = before is not None and uses_other(resource, before.fields, change.current.fields)
        if change.type == "DELETED" or ended or changed:
            namespace = change.current.fields["metadata"]["namespace"]
            for quota in quotas.in_order(namespace):
                self._steps.plan(self._count, quota.key, _REACT_SECONDS)

    def _count(self, key: str) -> None:
        quota = self.server.store.get(QUOTAS, key)
        if quota is not None:
            hard = dict(quota.fields["spec"].get("hard") or {})
            write_status(self.server.state, quota, {"hard": hard, "used": counted(self.server.state, quota)})
