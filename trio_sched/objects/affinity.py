"""``pod.spec.affinity``: node affinity, pod affinity and pod anti-affinity."""

from msgspec import Struct, field

from trio_sched.objects.selector import LabelSelector, NodeSelector, NodeSelectorTerm


class PreferredSchedulingTerm(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A node selector term that adds *weight* to the score of nodes that match."""

    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``nodeAffinity``: the nodes that a pod requires, and those that it prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A term of pod affinity or anti-affinity: which pods, and in which topology domain."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A pod affinity term that adds *weight* to scores."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``podAffinity`` or ``podAntiAffinity``, which have the same fields."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """All the affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
