"""What a family of metrics is: name, type, labels, help; as documented and as exposed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from attrs import evolve, field, frozen


class Type(Enum):
    """The type of a family, as in the text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    UNTYPED = "untyped"


ALPHA: Final = "ALPHA"
BETA: Final = "BETA"
STABLE: Final = "STABLE"


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


@frozen
class Family:
    """One family. What is exposed of it equals kube-scheduler's, unless its name begins with ``trio_sched_``."""

    name: str
    type: Type
    text: str
    """The help, without the stability."""
    labels: tuple[str, ...] = field(default=(), converter=_in_order)
    """In alphabetical order, as they are exposed; values of labels come in the same order."""
    stability: str = ALPHA
    """How stable it is by the rules of Kubernetes; empty for families that are not Kubernetes' own."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, without infinity."""
    gates: tuple[str, ...] = ()
    """Feature gates without which there is no such family."""
    since: tuple[int, int] = (0, 0)
    """The first emulated minor version that has it."""
    until: tuple[int, int] | None = None
    """The first emulated minor version that does not have it any more; None: all have."""
    beta_since: tuple[int, int] | None = None
    """The first emulated minor version in which it is not alpha any more, but beta."""
    deprecated_since: tuple[int, int] | None = None
    """The first emulated minor version whose help says that it will go."""
    note: str = ""
    """What is different from kube-scheduler, or why there is never a value; for the documentation."""

    def is_in(self, version: tuple[int, int]) -> bool:
        """Whether the emulated minor *version* has it."""
        return self.since <= version and (self.until is None or version < self.until)

    def at(self, version: tuple[int, int]) -> Family:
        """It as the emulated minor *version* has it."""
        beta, deprecated = self.beta_since, self.deprecated_since
        return evolve(
            self,
            stability=BETA if beta is not None and beta <= version else self.stability,
            text=f"(Deprecated since {deprecated[0]}.{deprecated[1]}.0) {self.text}"
            if deprecated is not None and deprecated <= version
            else self.text,
        )

    @property
    def help(self) -> str:
        """The help as it is exposed."""
        return f"[{self.stability}] {self.text}" if self.stability else self.text


def by_name(*groups: tuple[Family, ...]) -> dict[str, Family]:
    """The families of *groups* by name, in alphabetical order."""
    families = {family.name: family for group in groups for family in group}
    return dict(sorted(families.items()))
