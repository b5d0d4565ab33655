"""The defaults that the API server sets in a pod."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import QuantityError, parse_nano
from trio_sched.simulator.pods.containers import containers_of
from trio_sched.simulator.pods.pod_resources import aggregated_quantities

DEFAULT_ACCOUNT = "default"
"""The service account of pods that name none."""
_DEFAULT_TOLERATIONS: Sequence[Json] = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
"""The pods share them: nobody changes objects in the store, nor anything in them."""
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_MODE_DEFAULTED = ("secret", "configMap", "projected", "downwardAPI")
_MODE_0644 = 420
_TOKEN_SECONDS = 3600
_OVERCOMMITTED = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def fill(value: Json, name: str, default: Any) -> None:
    """Set *default* where the field is not set; to Go an empty text or a zero is not, unless it is a pointer's."""
    if not value.get(name):
        value[name] = default


def fill_pod(spec: Json) -> None:
    """Give the *spec* of a pod, which must be the caller's own, its defaults; a template does not have all of them."""
    fill_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork") is True:
        for container in containers_of(spec):
            for port in container.get("ports") or ():
                fill(port, "hostPort", port.get("containerPort"))
    for holder in containers_of(spec):
        if (holder.get("resources") or {}).get("limits"):
            _copy_limits(holder["resources"])
    if spec.get("resources"):
        with suppress(QuantityError):  # one of a container, for which the pod is refused
            _fill_pod_level(spec, spec["resources"])


def fill_spec(spec: Json) -> None:
    """Give the *spec* of a pod or of a template the defaults that both have; it must be the caller's own."""
    # serviceAccount is the old name of serviceAccountName; both are shown.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    fill(spec, "restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    fill(spec, "dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    fill(spec, "schedulerName", "default-scheduler")
    for container in containers_of(spec):
        _fill_container(container)
    for volume in spec.get("volumes") or ():
        _fill_volume(volume)


def _fill_container(container: Json) -> None:
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        fill(port, "protocol", "TCP")
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            _fill_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _fill_http(handler)
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            fill(reference, "apiVersion", "v1")


def _fill_probe(probe: Json) -> None:
    for key, value in _PROBE_DEFAULTS.items():
        fill(probe, key, value)
    _fill_http(probe)


def _fill_http(handler: Json) -> None:
    request = handler.get("httpGet")
    if request is not None:
        fill(request, "path", "/")
        fill(request, "scheme", "HTTP")


def _pull_policy(image: str) -> str:
    _, _, last = image.rpartition("/")
    if "@" in last:
        return "IfNotPresent"
    _, colon, tag = last.partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _fill_pod_level(spec: Json, resources: Json) -> None:
    """What the resources of the pod as a whole leave out follows from those of its containers, then from the limits.

    Raises:
        QuantityError: one of a container is no quantity.
    """
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if limits or requests:
        for name, quantity in aggregated_quantities(spec, "limits").items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, quantity)
    if limits:
        for name, quantity in aggregated_quantities(spec, "requests").items():
            if name in _OVERCOMMITTED:
                requests.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in _OVERCOMMITTED or name.startswith(_HUGE_PAGES):
                requests.setdefault(name, quantity)
    resources |= {kind: found for kind, found in (("limits", limits), ("requests", requests)) if found}


def _copy_limits(resources: Json) -> None:
    """A limit without a request is the request as well."""
    requests = dict(resources.get("requests") or {})
    for name, quantity in resources["limits"].items():
        requests.setdefault(name, quantity)
    resources["requests"] = requests


def _fill_volume(volume: Json) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for source in _MODE_DEFAULTED:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _MODE_0644)
    for projection in (volume.get("projected") or {}).get("sources") or ():
        if (token := projection.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", _TOKEN_SECONDS)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def admit_service_account(spec: Json) -> None:
    """What the admission plugin ServiceAccount sets in a pod."""
    fill(spec, "serviceAccountName", DEFAULT_ACCOUNT)
    spec["serviceAccount"] = spec["serviceAccountName"]


def add_default_tolerations(spec: Json) -> None:
    """Let the pod stay 300 s on a node that became not ready or unreachable, unless it has such a toleration."""
    given = spec.get("tolerations") or ()
    added = [
        default
        for default in _DEFAULT_TOLERATIONS
        if not any(_tolerates_eviction(toleration, default["key"]) for toleration in given)
    ]
    spec["tolerations"] = [*given, *added]


def _tolerates_eviction(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def quality_of_service(spec: Json) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort``, from the requests and limits for CPU and memory."""
    if spec.get("resources") is not None:
        holders = [spec["resources"]]
    else:
        holders = [container.get("resources") or {} for container in containers_of(spec)]
    stated, guaranteed = False, True
    for resources in holders:
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = _positive(requests.get(name)), _positive(limits.get(name))
            stated = stated or request > 0 or limit > 0
            guaranteed = guaranteed and limit > 0 and request == limit
            if stated and not guaranteed:
                return "Burstable"
    return "Guaranteed" if stated else "BestEffort"


def _positive(quantity: Any) -> int:
    if quantity is None:
        return 0
    try:
        return max(parse_nano(quantity), 0)
    except QuantityError:
        return 0  # an error of validation, not of the class
