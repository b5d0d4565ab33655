"""Pod groups: pods that are scheduled together."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct, field, structs

from trio_sched.objects.metadata import NamespacedObject


class GangSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """At least *min_count* pods are scheduled at the same time, or none."""

    min_count: int = 0


class BasicSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The pods are scheduled one by one."""


class PodGroupSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Exactly one of the two is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """All pods are placed on nodes with the same value of the label *key*."""

    key: str = ""


class PodGroupSchedulingConstraints(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec.schedulingConstraints``."""

    topology: tuple[TopologyConstraint, ...] | None = None

    @property
    def topology_key(self) -> str:
        """The key of the first constraint; empty if there is none."""
        return self.topology[0].key if self.topology else ""


class PodGroupResourceClaim(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A claim that the pods of the group share; gate DRAWorkloadResourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a PodGroup."""

    scheduling_policy: PodGroupSchedulingPolicy = field(default_factory=PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] | None = None
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    """Gate PodGroupPreemptionPolicy; from 1.37 on."""
    parent_composite_pod_group_name: str | None = None
    """Gate CompositePodGroup; from 1.37 on."""


class PodGroupCondition(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: str | None = None


class PodGroupResourceClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The ResourceClaim that was created from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a PodGroup."""

    conditions: tuple[PodGroupCondition, ...] | None = None
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] | None = None


class _ConstrainedSpec(Protocol):
    @property
    def scheduling_constraints(self) -> PodGroupSchedulingConstraints | None: ...


class _Constrained(Protocol):
    @property
    def spec(self) -> _ConstrainedSpec: ...


class SchedulingGroup(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What pod groups and composite ones have in common."""

    @property
    def topology_key(self: _Constrained) -> str:
        """The node label of which all nodes of its pods must have the same value; empty if there is none."""
        constraints = self.spec.scheduling_constraints
        return "" if constraints is None else constraints.topology_key


class PodGroup(SchedulingGroup, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``scheduling.k8s.io/v1alpha2`` PodGroup."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)

    @property
    def min_count(self) -> int | None:
        """``spec.schedulingPolicy.gang.minCount``; None if it is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def is_disrupted_together(self) -> bool:
        """Whether all its pods have to be evicted together."""
        return self.spec.disruption_mode == "PodGroup"

    def with_min_count(self, count: int) -> PodGroup:
        """The same gang, of *count* pods; it must be a gang."""
        policy = self.spec.scheduling_policy
        assert policy.gang is not None
        gang = structs.replace(policy.gang, min_count=count)
        spec = structs.replace(self.spec, scheduling_policy=structs.replace(policy, gang=gang))
        return structs.replace(self, spec=spec)
