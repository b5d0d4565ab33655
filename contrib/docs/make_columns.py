"""Writes docs/reference/columns.md from the docstrings of the snapshot: ``python -m contrib.docs.make_columns``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import ApiPage, Group

HEADER: Final = """\
# Columns

What plugins see of the nodes. `filter` and `score` get [`NodeColumns`](#nodecolumns), numpy arrays with one entry per
node; `filter_node` and `score_node` get a [`NodeView`](#nodeview), one node. Both are read-only.

```python
import numpy as np

from trio_sched.plugin_api import NodeColumns, Pod, hookimpl, select_pods

WEB = select_pods({"app": "web"})


class FewWebPods:
    name = "FewWebPods"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns):
        cpu = nodes.resource_row("cpu")  # 0: the rows are resources, the last axis is the nodes
        free = nodes.allocatable[cpu] - nodes.requested[cpu]
        return np.where(free > 1000, 100 - nodes.pod_counts(WEB).clip(0, 100), 0)
```

CPU is in milli-CPU, memory in bytes, everything else in counts. Pods that are assumed on a node count as being there.
Everything here is imported from `trio_sched.plugin_api`.

This page is made from the docstrings: change `trio_sched/snapshot/` and run `make docs`.
"""
PODS: Final = """\
Counts and sums per selector are kept up to date from the first call on, one placement at a time, so a call costs the
same for ten pods and for 100,000. Make selectors once, in `__init__`: [`select_pods`](#select_pods).
"""
DEVICES: Final = """\
What DynamicResources is made of: devices, the claims that have them, and caches of both. Ordinary plugins need
`nodes.devices` at most.
"""
GROUPS: Final = (
    Group("All nodes", ("NodeColumns", "NodeSet", "BoolArray", "Int64Array", "CodeArray", "per_distinct_value")),
    Group("One node", ("NodeView",)),
    Group("Pods on the nodes", ("select_pods", "PodSelector", "DomainCounts", "NO_DOMAIN", "NamespacedMatcher"), PODS),
    Group(
        "Label selectors",
        ("compile_selector", "selector_of_map", "LabelMatcher", "EVERYTHING", "NOTHING", "SelectorError", "SizedCache"),
    ),
    Group(
        "Nodes by labels, fields and taints",
        (
            "match_labels",
            "match_label_values",
            "match_node_selector",
            "match_term",
            "node_selector_matches",
            "term_is_empty",
            "term_problem",
            "terms_problem",
            "Tolerations",
        ),
    ),
    Group(
        "Affinity terms of pods",
        ("affinity_terms", "PodTerms", "AffinityTerm", "TermKind", "TermCounts", "MatchingTerms"),
    ),
    Group(
        "Devices",
        (
            "DeviceTable",
            "NodeDevices",
            "NodeDevicesCache",
            "Pool",
            "PoolDevice",
            "DeviceModel",
            "DeviceId",
            "SharedUse",
            "AllocatedDevices",
            "ClaimCache",
            "EXTENDED_RESOURCE_CLAIM",
            "BadNodeSelector",
            "check_node_selector",
        ),
        DEVICES,
    ),
)
API_PAGE: Final = ApiPage("columns.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
