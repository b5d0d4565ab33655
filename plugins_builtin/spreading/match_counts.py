"""Matching pods per topology domain, as one scheduling cycle sees them: the cluster's counts and assumed changes."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from trio_sched.plugin_api import NO_DOMAIN, DomainCounts, Int64Array, NodeColumns


@define(eq=False)
class MatchCounts:
    """The counts of the cluster, which are shared, and changes to them, which belong to one `CycleState`.

    Changes come from add_pod and remove_pod: pods that are assumed to be there, or not to be.
    """

    base: DomainCounts
    changes: dict[int, int] = field(factory=dict)
    """Domain → pods more or fewer."""

    def clone(self) -> MatchCounts:
        """A copy with changes of its own."""
        return MatchCounts(self.base, self.changes.copy())

    def change(self, domain: int, delta: int) -> None:
        """*delta* pods more in *domain*."""
        changed = self.changes.get(domain, 0) + delta
        if changed:
            self.changes[domain] = changed
        else:
            self.changes.pop(domain, None)

    def counts(self, nodes: NodeColumns) -> Int64Array:
        """Shape (domains,), not to be written to: pods in every domain in the label vocabulary of *nodes*."""
        counts = self.base.counts
        missing = len(nodes.label_vocabulary(self.base.key)) - len(counts)
        if missing > 0:  # a label value that came up after counting
            counts = np.concatenate([counts, np.zeros(missing, dtype=np.int64)])
        elif self.changes:
            counts = counts.copy()
        for domain, delta in self.changes.items():
            counts[domain] += delta
        return counts

    def count(self, domain: int) -> int:
        """Pods in *domain*."""
        known = int(self.base.counts[domain]) if domain < len(self.base.counts) else 0
        return known + self.changes.get(domain, 0)

    @property
    def total(self) -> int:
        """Pods in all domains."""
        return self.base.total + sum(self.changes.values())

    @property
    def minimum(self) -> int:
        """The smallest count of a domain that is present; `NO_DOMAIN` if none is."""
        # A label value that came up after counting is no domain of those that were counted.
        changes = {domain: delta for domain, delta in self.changes.items() if domain < len(self.base.counts)}
        if not changes:
            return self.base.minimum
        if len(changes) == 1:
            (domain,) = changes
            if not self.base.present[domain]:
                return self.base.minimum
            return min(self.count(domain), self.base.minimum_without(domain))
        counts = self.base.counts.copy()
        for domain, delta in changes.items():
            counts[domain] += delta
        present = counts[self.base.present]
        return int(present.min()) if len(present) else NO_DOMAIN
