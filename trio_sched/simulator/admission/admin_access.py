"""Claims that ask for access as an administrator: only in namespaces that permit it."""

from __future__ import annotations

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.errors.status_errors import invalid
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.meta.field_problems import forbidden_field

_LABEL: Final = "resource.kubernetes.io/admin-access"


def check_claim(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Refuse a new claim.

    Raises:
        ApiError: 422.
    """
    _check(state, resource, fields, fields.get("spec") or {})


def check_template(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Refuse a new template of claims.

    Raises:
        ApiError: 422.
    """
    _check(state, resource, fields, (fields.get("spec") or {}).get("spec") or {})


def _check(state: ClusterState, resource: ResourceType, fields: Json, spec: Json) -> None:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if not (request.get("exactly") or {}).get("adminAccess"):
            continue
        metadata = fields["metadata"]
        namespace = state.store.get("namespaces", metadata.get("namespace") or "")
        labels = (namespace.fields["metadata"].get("labels") or {}) if namespace else {}
        if labels.get(_LABEL) != "true":
            detail = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
            problem = forbidden_field(f"spec.devices.requests[{index}].adminAccess", detail)
            raise invalid(resource, metadata.get("name") or "", [problem])
