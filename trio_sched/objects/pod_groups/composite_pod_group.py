"""Composite pod groups: groups of pod groups, and of other composite ones, that are scheduled together."""

from __future__ import annotations

from msgspec import Struct, field, structs

from trio_sched.objects.pod_groups.pod_group import PodGroupCondition, PodGroupSchedulingConstraints, SchedulingGroup


class CompositeGangSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """At least *min_group_count* child groups are scheduled at the same time, or none."""

    min_group_count: int = 0


class CompositeBasicSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The child groups are scheduled independently of each other."""


class CompositePodGroupSchedulingPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Exactly one of the two is set."""

    basic: CompositeBasicSchedulingPolicy | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class SingleCompositeDisruptionMode(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Child groups can be disrupted independently of each other."""


class AllCompositeDisruptionMode(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Child groups can only be disrupted together."""


class CompositeDisruptionMode(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Exactly one of the two is set."""

    single: SingleCompositeDisruptionMode | None = None
    all: AllCompositeDisruptionMode | None = None


class WorkloadReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The Workload, and the template in it, that a group was made of."""

    workload_name: str = ""
    template_name: str = ""


class CompositePodGroupSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a CompositePodGroup."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = field(default_factory=CompositePodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: CompositeDisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a CompositePodGroup, which kube-scheduler does not write before 1.38."""

    conditions: tuple[PodGroupCondition, ...] | None = None


class CompositePodGroup(SchedulingGroup, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``scheduling.k8s.io/v1alpha3`` CompositePodGroup."""

    spec: CompositePodGroupSpec = field(default_factory=CompositePodGroupSpec)
    status: CompositePodGroupStatus = field(default_factory=CompositePodGroupStatus)

    @property
    def min_group_count(self) -> int | None:
        """``spec.schedulingPolicy.gang.minGroupCount``; None if it is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_group_count

    @property
    def is_disrupted_together(self) -> bool:
        """Whether all pods below it have to be evicted together."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None

    def with_min_group_count(self, count: int) -> CompositePodGroup:
        """The same, of which *count* child groups are scheduled at the same time."""
        policy = CompositePodGroupSchedulingPolicy(gang=CompositeGangSchedulingPolicy(count))
        return structs.replace(self, spec=structs.replace(self.spec, scheduling_policy=policy))
