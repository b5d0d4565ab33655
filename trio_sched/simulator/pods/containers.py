"""The containers of a pod, which are in three lists."""

from collections.abc import Iterator

from trio_sched.documents.json_values import Json


def containers_of(spec: Json) -> list[Json]:
    """The containers of a pod that are counted: those that are not ephemeral."""
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def placed_containers(spec: Json, path: str) -> Iterator[tuple[Json, str]]:
    """All containers of a pod whose spec is at *path*, with the path of each."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"
