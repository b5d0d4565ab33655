"""The service account ``default`` that every namespace has.

Source: the service accounts controller of Kubernetes.
"""

from typing import Final

import trio
from attrs import define, field

from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.controllers.steps import Steps
from trio_sched.simulator.lifecycle import create
from trio_sched.simulator.object_store import Change

_REACT_SECONDS: Final = 0.0
_NAME: Final = "default"


@define(eq=False)
class ServiceAccountController:
    """Creates the account in namespaces that have none, again when it has been deleted."""

    server: ApiServer
    _steps: Steps = field(factory=Steps, init=False)

    @property
    def is_busy(self) -> bool:
        """Whether an account is to be created."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Give the namespaces that there are their account, then those that are created; never returns."""
        store = self.server.store
        namespaces = store.collection("namespaces")
        for name in list(namespaces.objects):
            self._create(name)
        stops = namespaces.listen(self._on_namespace), store.collection("serviceaccounts").listen(self._on_account)
        task_status.started()
        await self._steps.run(*stops)

    def _on_namespace(self, change: Change) -> None:
        if change.type == "ADDED":
            self._steps.plan(self._create, change.current.key, _REACT_SECONDS)

    def _on_account(self, change: Change) -> None:
        namespace, _, name = change.current.key.partition("/")
        if change.type == "DELETED" and name == _NAME:
            self._steps.plan(self._create, namespace, _REACT_SECONDS)

    def _create(self, namespace: str) -> None:
        state = self.server.state
        accounts = state.types.core("serviceaccounts")
        found = state.store.get("namespaces", namespace)
        if found is None or "deletionTimestamp" in found.fields["metadata"]:
            return
        if state.get(accounts, namespace, _NAME) is None:
            create(state, accounts, namespace, {"metadata": {"name": _NAME}})
