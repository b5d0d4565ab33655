import json
from typing import Any


def kubeconfig(*, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **top: Any) -> str:
    """The text of a kubeconfig with one cluster and one user."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"} if cluster is None else cluster}],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
    }
    return json.dumps(document | top)
