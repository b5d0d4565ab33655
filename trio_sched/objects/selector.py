"""Label selectors and node selectors."""

from msgspec import Struct


class LabelSelectorRequirement(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``labelSelector.matchExpressions``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``labelSelector``: everything must hold; an empty one matches every object, a missing one matches none."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelectorRequirement(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``matchExpressions`` or ``matchFields`` of a node selector term."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """All of its requirements must hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``requiredDuringSchedulingIgnoredDuringExecution`` of node affinity: one of its terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None
