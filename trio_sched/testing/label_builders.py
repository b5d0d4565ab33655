"""Label selectors, and what pods say with them: terms of pod affinity, spread constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import TopologySpreadConstraint
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement

Selector = str | Mapping[str, str] | LabelSelector | None
"""A selector as `label_selector` reads it, labels that must all be there, or a whole `LabelSelector`; None: no pod."""
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def label_selector(*expressions: str) -> LabelSelector:
    """A label selector; without *expressions* it matches everything.

    Args:
        expressions: all must hold: ``app=web``, ``track In stable canary``, ``track NotIn test``, ``gpu Exists``,
            ``gpu DoesNotExist``; several in one text are separated by commas.

    Raises:
        ValueError: one is not written like that.
    """
    labels: dict[str, str] = {}
    requirements: list[LabelSelectorRequirement] = []
    for text in [part.strip() for expression in expressions for part in expression.split(",") if part.strip()]:
        key, equals, value = text.partition("=")
        if equals:
            labels[key.strip()] = value.strip().lstrip("=")
            continue
        key, *rest = text.split()
        if not rest or rest[0] not in _OPERATORS or (rest[0] in ("In", "NotIn")) != (len(rest) > 1):
            forms = "key=value, key In values…, key NotIn values…, key Exists or key DoesNotExist"
            raise ValueError(f"expected {forms}, got {text!r}")
        requirements.append(LabelSelectorRequirement(key=key, operator=rest[0], values=tuple(rest[1:])))
    return LabelSelector(match_labels=labels or None, match_expressions=tuple(requirements) or None)


def read_selector(selector: Selector) -> LabelSelector | None:
    """A selector in any of the forms of `Selector`.

    Raises:
        ValueError: it is a text that `label_selector` does not read.
    """
    if selector is None or isinstance(selector, LabelSelector):
        return selector
    return label_selector(selector) if isinstance(selector, str) else LabelSelector(match_labels=dict(selector))


def spread_constraint(
    key: str = "topology.kubernetes.io/zone",
    selector: Selector = "",
    *,
    max_skew: int = 1,
    hard: bool = True,
    min_domains: int | None = None,
    match_label_keys: Iterable[str] = (),
    node_affinity_policy: str | None = None,
    node_taints_policy: str | None = None,
) -> TopologySpreadConstraint:
    """A topology spread constraint, for ``pod(spread=[…])``.

    Args:
        key: the node label whose values are the domains.
        selector: which pods are counted; the empty text counts all.
        max_skew: by how many pods domains may differ.
        hard: whether pods that would break it stay pending; else it counts in scores.
        min_domains: with fewer domains the smallest count is zero.
        match_label_keys: labels of which counted pods have the same values as the pod.
        node_affinity_policy: ``Honor`` or ``Ignore``.
        node_taints_policy: ``Honor`` or ``Ignore``.

    Raises:
        ValueError: *selector* is not written as `label_selector` reads it.
    """
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=key,
        when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
        label_selector=read_selector(selector),
        min_domains=min_domains,
        node_affinity_policy=node_affinity_policy,
        node_taints_policy=node_taints_policy,
        match_label_keys=tuple(match_label_keys) or None,
    )


def pod_term(
    selector: Selector = "",
    key: str = "kubernetes.io/hostname",
    *,
    namespaces: Iterable[str] = (),
    namespace_selector: Selector = None,
    match_label_keys: Iterable[str] = (),
    mismatch_label_keys: Iterable[str] = (),
) -> PodAffinityTerm:
    """A term of pod affinity or anti-affinity.

    Args:
        selector: which pods it is about.
        key: the node label; nodes with the same value are one domain.
        namespaces: of these pods; none and no *namespace_selector* is that of the pod.
        namespace_selector: by the labels of namespaces.
        match_label_keys: labels of which these pods have the same values as the pod.
        mismatch_label_keys: labels of which they have other values.

    Raises:
        ValueError: a selector is not written as `label_selector` reads it.
    """
    return PodAffinityTerm(
        label_selector=read_selector(selector),
        namespaces=tuple(namespaces) or None,
        topology_key=key,
        namespace_selector=read_selector(namespace_selector),
        match_label_keys=tuple(match_label_keys) or None,
        mismatch_label_keys=tuple(mismatch_label_keys) or None,
    )


def pod_affinity(*required: PodAffinityTerm, preferred: Iterable[tuple[int, PodAffinityTerm]] = ()) -> Affinity:
    """Pod affinity: all of *required* must hold; *preferred* are pairs (weight, term) that add to the score."""
    return Affinity(pod_affinity=_terms(required, preferred))


def pod_anti_affinity(*required: PodAffinityTerm, preferred: Iterable[tuple[int, PodAffinityTerm]] = ()) -> Affinity:
    """Pod anti-affinity: none of *required* may match; *preferred* are pairs (weight, term) that lower the score."""
    return Affinity(pod_anti_affinity=_terms(required, preferred))


def _terms(required: Iterable[PodAffinityTerm], preferred: Iterable[tuple[int, PodAffinityTerm]]) -> PodAffinity:
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(required) or None,
        preferred_during_scheduling_ignored_during_execution=tuple(
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in preferred
        )
        or None,
    )
