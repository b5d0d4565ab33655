"""PodDisruptionBudgets: how many of some pods may be evicted now."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.selector import LabelSelector


class DisruptionBudgetSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec``: the pods it applies to."""

    selector: LabelSelector | None = None


class DisruptionBudgetStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status``: how many pods may be evicted, and which have been (by name, with the time of their eviction)."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``policy/v1`` PodDisruptionBudget."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DisruptionBudgetSpec = field(default_factory=DisruptionBudgetSpec)
    status: DisruptionBudgetStatus = field(default_factory=DisruptionBudgetStatus)
