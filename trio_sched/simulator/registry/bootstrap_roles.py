"""The cluster roles that every new cluster has, as far as they are about paths: for access reviews."""

from typing import Final

from trio_sched.documents.json_values import Json

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_VERSION: Final = ("/version", "/version/")
_DISCOVERY: Final = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_METRICS: Final = ("/metrics", "/metrics/slis")
_READABLE: Final = {
    "system:unauthenticated": (*_HEALTH, *_VERSION),
    "system:authenticated": (*_HEALTH, *_VERSION, *_DISCOVERY),
    "system:monitoring": (*_HEALTH, *(f"{path}/*" for path in _HEALTH), *_METRICS),
}
"""What the roles system:public-info-viewer, system:discovery and system:monitoring let groups read."""
_EVERYTHING: Final = "system:masters"


def allows_by_bootstrap_roles(spec: Json) -> bool:
    """Decides the access review *spec*; give this to `ApiServer` as *allows*.

    Administrators may do everything, the groups above read their paths; about resources nobody else may do anything.
    """
    groups = spec.get("groups") or ()
    if _EVERYTHING in groups:
        return True
    attributes = spec.get("nonResourceAttributes")
    if not attributes or attributes.get("verb") != "get":
        return False
    path = str(attributes.get("path") or "")
    return any(_matches(pattern, path) for group in groups for pattern in _READABLE.get(group, ()))


def _matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
