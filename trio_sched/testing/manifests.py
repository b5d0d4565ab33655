"""Objects from builders as the manifests that an API server takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from attrs import frozen

from trio_sched.daemon.plugins.object_writes import plain_object, type_fields
from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.documents.json_values import Json
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload import (
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from trio_sched.objects.storage.storage import CSINode
from trio_sched.plugin_api.custom_resources import CustomResource

KubeObject = msgspec.Struct | Json
"""Any Kubernetes object: made by a builder, or a manifest."""


@frozen
class ObjectChange:
    """An object is added (*old* is None), deleted (*new* is None), or replaced by a new version."""

    old: msgspec.Struct | None
    new: msgspec.Struct | None


_T = TypeVar("_T")


def manifest_of(obj: Any, custom_resources: Iterable[CustomResource[Any]] = ()) -> Json:
    """The manifest of *obj*, with what a server requires although no scheduler looks at it.

    Raises:
        TypeError: it is of no kind that is known.
    """
    for resource in custom_resources:
        if isinstance(obj, resource.type):
            return {**type_fields(resource), **plain_object(resource, obj)}
    if isinstance(obj, dict):
        return obj
    manifest: Json = msgspec.to_builtins(obj)
    if isinstance(obj, Pod):
        return {"apiVersion": "v1", "kind": "Pod", **manifest}
    if isinstance(obj, Node):
        return {"apiVersion": "v1", "kind": "Node", **manifest}
    if isinstance(obj, ReplicaSet | StatefulSet | ReplicationController):
        manifest["spec"] = {**_without_pods(manifest.get("spec", {})), **manifest.get("spec", {})}
    if isinstance(obj, Deployment | DaemonSet):
        spec = _without_pods(manifest.get("spec", {}))
        named = {"template": spec["template"]} if isinstance(obj, DaemonSet) else spec
        manifest["spec"] = {**named, **manifest.get("spec", {})}
    if isinstance(obj, Job):
        pod_of_job = {"restartPolicy": "Never", **_without_pods({})["template"]["spec"]}
        manifest["spec"] = {"parallelism": 0, "template": {"spec": pod_of_job}, **manifest.get("spec", {})}
    if isinstance(obj, Service):
        manifest["spec"] = {"ports": [{"port": 80}], **manifest.get("spec", {})}
    if isinstance(obj, CSINode):
        for driver in manifest.get("spec", {}).get("drivers") or ():
            driver.setdefault("nodeID", manifest["metadata"]["name"])
    for name, kind in KINDS.items():
        if type(obj) is kind.type and kind.type is not AnyObject:
            group = f"{kind.group}/{kind.version}" if kind.group else kind.version
            return {"apiVersion": group, "kind": name, **manifest}
    if "apiVersion" not in manifest or "kind" not in manifest:
        what = type(obj).__name__
        raise TypeError(
            f"what kind {what} is of is not known: no plugin watches a CustomResource of this type; name it "
            "in custom_resources=, or give a manifest"
        )
    return manifest


def _without_pods(spec: Json) -> Json:
    selector = spec.get("selector", {})
    is_whole = "matchLabels" in selector or "matchExpressions" in selector
    labels = selector.get("matchLabels", {}) if is_whole else selector
    container = {"name": "main", "image": "registry.test/app:1"}
    return {"replicas": 0, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}


def decode_like(body: bytes, like: _T, custom_resources: Iterable[CustomResource[Any]] = ()) -> _T:
    """The object in *body*, of the type of *like*."""
    for resource in custom_resources:
        if isinstance(like, resource.type):
            decoded: _T = resource.decode(body)
            return decoded
    if isinstance(like, dict):
        return msgspec.json.decode(body)  # type: ignore[no-any-return]  # a manifest again
    return msgspec.json.decode(body, type=type(like))
