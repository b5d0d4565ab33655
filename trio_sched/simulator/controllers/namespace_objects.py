"""What every namespace has: the service account ``default``, and the certificate of the API server in a ConfigMap.

Source: the service accounts controller of Kubernetes, and its publisher of root certificates.
"""

from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Final

from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.errors.status_errors import QuotaExceeded
from trio_sched.simulator.registry.lifecycle import create
from trio_sched.simulator.storage.object_store import Change

_REACT_SECONDS: Final = 0.0
_CERTIFICATES: Final = "kube-root-ca.crt"
_OBJECTS: Final[dict[str, Json]] = {
    "serviceaccounts": {"metadata": {"name": "default"}},
    "configmaps": {
        "metadata": {
            "name": _CERTIFICATES,
            "annotations": {
                "kubernetes.io/description": (
                    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
                    "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
                    "distributions of Kubernetes clusters."
                )
            },
        },
        # Nobody runs in simulated pods who could connect.
        "data": {"ca.crt": ""},
    },
}
"""Resource → the object of each namespace."""


@define(eq=False)
class NamespaceObjectController(Controller):
    """Creates the objects in namespaces that lack them, again when they have been deleted."""

    def start(self) -> None:
        """Give the namespaces that there are their objects, then those that are created."""
        for name in list(self.server.store.collection("namespaces").objects):
            self._create(name)
        self.listen("namespaces", self._on_namespace)
        for plural in _OBJECTS:
            self.listen(plural, partial(self._on_object, plural))

    def _on_namespace(self, change: Change) -> None:
        if change.type == "ADDED":
            self._steps.plan(self._create, change.current.key, _REACT_SECONDS)

    def _on_object(self, plural: str, change: Change) -> None:
        namespace, _, name = change.current.key.partition("/")
        if change.type == "DELETED" and name == _OBJECTS[plural]["metadata"]["name"]:
            self._steps.plan(self._create, namespace, _REACT_SECONDS)

    def _create(self, namespace: str) -> None:
        state = self.server.state
        found = state.store.get("namespaces", namespace)
        if found is None or "deletionTimestamp" in found.fields["metadata"]:
            return
        for plural, fields in _OBJECTS.items():
            resource = state.types.core(plural)
            if state.get(resource, namespace, fields["metadata"]["name"]) is None:
                with suppress(QuotaExceeded):
                    create(state, resource, namespace, deepcopy(fields))
