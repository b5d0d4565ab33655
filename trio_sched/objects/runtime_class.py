"""RuntimeClasses, as far as they say where pods can run."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from trio_sched.objects.metadata import NamedObject

KIND = "RuntimeClass"


class Scheduling(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``scheduling`` of a RuntimeClass."""

    node_selector: dict[str, str] | None = None


class RuntimeClass(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``node.k8s.io/v1`` RuntimeClass."""

    scheduling: Scheduling | None = None

    @property
    def selector(self) -> Mapping[str, str]:
        """What every new pod of the class gets into its node selector."""
        return (self.scheduling.node_selector or {}) if self.scheduling is not None else {}
