"""A pod as the checks of the Pod Security Standards see it, and how they name what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.containers import placed_containers

LATEST: Final = 35
"""The minor version in which a check has changed last."""
_WINDOWS_EXEMPT: Final = 25
_USER_NAMESPACES_EXEMPT: Final = 35


@frozen
class Subject:
    """A pod, or a template of pods, as the checks see it."""

    annotations: Json
    spec: Json
    minor: int
    """The version of the checks."""

    @property
    def security(self) -> Json:
        """The security context of the pod."""
        security: Json = self.spec.get("securityContext") or {}
        return security

    @property
    def is_exempt_windows(self) -> bool:
        """Whether it runs on Windows, which most fields of the security context mean nothing to."""
        return self.minor >= _WINDOWS_EXEMPT and (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def is_exempt_user_namespace(self) -> bool:
        """Whether its users are not those of the host."""
        return self.minor >= _USER_NAMESPACES_EXEMPT and self.spec.get("hostUsers") is False

    def containers(self) -> Iterator[tuple[str, Json, Json]]:
        """Name, fields and security context of every container."""
        for container, _ in placed_containers(self.spec, ""):
            yield container.get("name") or "", container, container.get("securityContext") or {}


Violation = tuple[str, str]
"""What is forbidden, in short, and where."""
Check = Callable[[Subject], Violation | None]


def quoted(items: Iterable[str]) -> str:
    """*items* in quotes."""
    return ", ".join(f'"{item}"' for item in items)


def counted(one: str, many: str, items: Sequence[object] | set[str]) -> str:
    """The one word or the other, by the number of *items*."""
    return one if len(items) == 1 else many


def named(containers: Sequence[str]) -> str:
    """Containers by their names."""
    return f"{counted('container', 'containers', containers)} {quoted(containers)}"


def setters(containers: Sequence[str], *, pod: bool) -> str:
    """Who has set something: the pod, containers, or both."""
    return " and ".join([*(["pod"] if pod else []), *([named(containers)] if containers else [])])
