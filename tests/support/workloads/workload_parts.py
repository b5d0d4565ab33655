"""What scenarios of workloads are made of, and which there are."""

from collections.abc import Awaitable, Callable
from typing import Any

from workload_mirror import Summary
from workload_worlds import Place

from trio_sched.documents.json_values import Json

SCENARIOS: dict[str, Callable[[Place], Awaitable[None]]] = {}
HUGE = "100"
"""More cores than any node has: such pods stay pending, and rollouts stop where they are."""


def scenario(act: Callable[[Place], Awaitable[None]]) -> Callable[[Place], Awaitable[None]]:
    """Add a scenario under the name of its function."""
    SCENARIOS[act.__name__.replace("_", "-")] = act  # type: ignore[attr-defined]
    return act


def template(
    image: str = "app:1", app: str = "app", annotations: Json | None = None, cpu: str = "", **spec: Any
) -> Json:
    """A pod template."""
    metadata: Json = {"labels": {"app": app}, **({"annotations": annotations} if annotations else {})}
    container: Json = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}} if cpu else {}}
    return {"metadata": metadata, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}}


def ending(seconds: float, code: int = 0) -> Json:
    """The annotations of pods that end."""
    return {"trio-sched.dev/run-seconds": str(seconds), "trio-sched.dev/exit-code": str(code)}


def selector(app: str = "app") -> Json:
    """Selects the pods of an app."""
    return {"matchLabels": {"app": app}}


def rolling(surge: Any, unavailable: Any) -> Json:
    """How a Deployment rolls."""
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def apart(app: str = "app") -> Json:
    """One pod of an app per node."""
    rule = {"labelSelector": selector(app), "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}}


def has(*texts: str) -> Callable[[Summary], bool]:
    """Whether every one of *texts* is in some line."""
    return lambda summary: all(any(text in line for line in summary) for text in texts)


def lacks(*texts: str) -> Callable[[Summary], bool]:
    """Whether none of *texts* is in any line."""
    return lambda summary: not any(text in line for line in summary for text in texts)
