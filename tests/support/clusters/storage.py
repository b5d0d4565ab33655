"""Storage objects and pods with volumes, as the API server's JSON says them."""

from typing import Any

import msgspec

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.objects.pod import Pod
from trio_sched.testing import FakeHandle, pod

Json = dict[str, Any]


def merged(base: Json, more: Json) -> Json:
    result = dict(base)
    for name, value in more.items():
        inner = result.get(name)
        result[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


def pod_with(*volumes: Json | str, name: str = "pod", **arguments: Any) -> Pod:
    """A pod with claims by name, or volumes as they are written."""
    written = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} if isinstance(one, str) else one
        for i, one in enumerate(volumes)
    ]
    fields = msgspec.to_builtins(pod(name, **arguments))
    return msgspec.convert(merged(fields, {"spec": {"volumes": written}}), Pod)


class Storage(FakeHandle):
    """A scheduler that knows storage objects; each method makes one known and returns it."""

    def put(self, kind: str, fields: Json) -> Any:
        new = msgspec.convert(fields, KINDS[kind].type)
        key = new.metadata.namespace, new.metadata.name
        others = [o for o in self.known_objects.get(kind, ()) if (o.metadata.namespace, o.metadata.name) != key]
        self.known_objects[kind] = [*others, new]
        return new

    def storage_class(self, name: str = "late", *, mode: str | None = "WaitForFirstConsumer", **more: Any) -> Any:
        fields = {"metadata": {"name": name}, "provisioner": "csi.test", "volumeBindingMode": mode, **more}
        return self.put("StorageClass", {k: v for k, v in fields.items() if v is not None})

    def claim(self, name: str = "data", *, volume: str = "", of: str | None = "late", **more: Any) -> Any:
        """A claim; with *volume* it is bound."""
        annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
        fields: Json = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
                "resourceVersion": "7",
                "annotations": annotations,
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": volume,
            },
            "status": {"phase": "Bound" if volume else "Pending"},
        }
        if of is not None:
            fields["spec"]["storageClassName"] = of
        return self.put("PersistentVolumeClaim", merged(fields, more))

    def volume(self, name: str, *, on: Json | None = None, of: str = "late", size: str = "5Gi", **more: Any) -> Any:
        """A volume; *on* are labels (or lists of values of labels) that nodes must have to reach it."""
        fields: Json = {
            "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "7"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": of},
            "status": {"phase": "Available"},
        }
        if on is not None:
            expressions = [
                {"key": key, "operator": "In", "values": values if isinstance(values, list) else [values]}
                for key, values in on.items()
            ]
            fields["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
        return self.put("PersistentVolume", merged(fields, more))

    def csi_node(self, name: str, migrated: str = "", **limits: int | None) -> Any:
        """A CSINode; drivers are written with ``_`` for dots."""
        drivers = [
            {"name": driver.replace("_", "."), **({} if limit is None else {"allocatable": {"count": limit}})}
            for driver, limit in limits.items()
        ]
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
        return self.put(
            "CSINode", {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}
        )
