"""Kinds that nothing in the simulator reads: their objects are checked for their shape, and stored as they are sent."""

from typing import Any

import msgspec
import pytest
from simulator_api import Api

from trio_sched.simulator import ApiServer
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError
from trio_sched.simulator.storage.resource_types import TypeRegistry

REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
STORED: dict[tuple[str, str], dict[str, Any]] = {
    ("v1", "ConfigMap"): {"data": {"a b": "x"}, "immutable": True},
    ("v1", "Endpoints"): {"subsets": [{"addresses": [{"ip": "any"}], "ports": [{"port": 80}]}]},
    ("v1", "Secret"): {"data": {"a": "eA=="}},
    ("v1", "Service"): {"spec": {"selector": {"app": "web"}, "type": "any", "ports": [{"port": 80}]}},
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): {"webhooks": [{"name": "w"}]},
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): {"webhooks": [{"name": "w"}]},
    ("apiregistration.k8s.io/v1", "APIService"): {"spec": {"group": "g", "version": "v1"}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"spec": {"maxReplicas": 0, "metrics": [{"type": "any"}]}},
    ("discovery.k8s.io/v1", "EndpointSlice"): {"addressType": "any", "endpoints": [{"addresses": ["any"]}]},
    ("networking.k8s.io/v1", "Ingress"): {"spec": {"rules": [{"host": "A b"}]}},
    ("networking.k8s.io/v1", "IngressClass"): {"spec": {"controller": "any"}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 0}]}]}},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": [{"resources": ["pods"]}]},
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {"rules": [{"resources": ["pods"]}]},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {"roleRef": REFERENCE, "subjects": [{"kind": "any"}]},
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): {"roleRef": REFERENCE, "subjects": [{"kind": "any"}]},
}


@pytest.mark.parametrize(("api_version", "kind"), STORED)
async def test_a_kind_without_rules_is_stored_as_it_is_sent_and_may_be_changed(api_version: str, kind: str) -> None:
    api, fields = Api(ApiServer()), STORED[api_version, kind]
    resource = TypeRegistry().built_in(api_version, kind)
    root = f"/apis/{api_version}" if resource.group else "/api/v1"
    path = f"{root}{'/namespaces/default' if resource.namespaced else ''}/{resource.plural}"
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "n"}, **fields}
    check_manifests([Manifest(msgspec.json.decode(msgspec.json.encode(body)))])
    created = await api("POST", path, body)
    assert {name: created[name] for name in created if name not in ("apiVersion", "kind", "metadata")} == fields
    for mistake in ({"unknown": "x"}, *({field: 5.5} for field in fields)):
        await api("PUT", f"{path}/n?fieldValidation=Strict", {**body, **mistake}, expect=400)
        with pytest.raises(ManifestError):
            check_manifests([Manifest({**body, **mistake})])
    await api("PUT", f"{path}/n", {**body, **dict.fromkeys(fields)})


async def test_of_a_service_the_selector_is_checked(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"selector": {"a b": "c"}}}
    answer = await api("POST", "/api/v1/namespaces/default/services", body, expect=422)
    assert "spec.selector: Invalid value: " in answer["message"]
