"""Writes docs/reference/testing.md from the toolkit for tests: ``python -m contrib.docs.make_testing``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import TESTING, ApiPage, Group
from contrib.docs.pages import table
from trio_sched.testing.conformance.check import CHECKS

HEADER: Final = """\
# Testing

What tests of plugins are made of; [how to test a plugin](../how_to/test_a_plugin.md) shows it in use. Everything is
imported from `trio_sched.testing`, the strategies from `trio_sched.testing.strategies`.

```sh
pip install "trio-sched[testing]"
```

## In pytest

trio-sched brings a plugin for pytest, which pytest finds by itself. Async tests that use `trio_sched` run on a clock
that jumps over every wait. Three fixtures need no import:

| fixture | what it is |
| --- | --- |
| `fake_handle` | a new [`FakeHandle`](#fakehandle) |
| `replayed_cluster` | [`replayed_cluster`](#replayed_cluster) |
| `virtual_cluster` | [`virtual_cluster`](#virtual_cluster) |

The option `plugin_hook_seconds` of pytest's configuration is after how long [a call of a
hook](../how_to/test_a_plugin.md#hooks-that-never-return) is interrupted, 20 s by default.

Tests that another plugin runs (pytest-trio, anyio, pytest-asyncio) are left to it; those of pytest-trio that use a
virtual cluster get a clock that jumps.

This page is made from the docstrings: change `trio_sched/testing/` and run `make docs`.
"""
_CHECKED: Final = {
    "definition": "the class has nothing that its author hardly meant; its arguments are read and written",
    "registrations": "events are registered in a form that can be used; the kinds that the class names exist",
    "mutation": "hooks change neither objects nor columns nor what they are given",
    "answers": "each hook returns what it may, for all kinds of pods and nodes",
    "hooks": "reserve, permit, bind and the like can be called as a scheduler does; what they write is declared",
    "blocking": "no hook sleeps, reads files or opens sockets while everything waits for it, or never returns",
    "hidden_state": "equal questions get equal answers: no time of day, no chance, no former calls, no identities",
    "undone": "`unreserve` takes back what `reserve` did; what is done to a clone of the state stays in the clone",
    "unawaited": "every coroutine is awaited",
    "assumed_pods": "`add_pod` and `remove_pod` change in the state what `pre_filter` would have written",
    "subsets": "the answer about a node does not depend on which other nodes are shown",
    "dependencies": "`depends_on` names all that answers depend on",
    "signatures": "pods with an equal `sign` get equal answers",
    "caching": "cached answers are those that the plugin would give now, after random changes",
    "events": "after random changes no pod waits that would pass now, nor do pods activate each other for ever",
    "clauses": "clauses fail only where the plugin rejects, and their changes meet them",
}
CONFORMANCE: Final = "What is checked, each a test case of its own:\n\n"


def _checks() -> str:
    return CONFORMANCE + table(("check", "what holds"), ((f"`{name}`", _CHECKED[name]) for name in CHECKS))


GROUPS: Final = (
    Group(
        "One decision", ("schedule", "Outcome", "make_plugin", "make_profile", "make_table", "ask_hint"), module=TESTING
    ),
    Group("Conformance", ("conformance_test", "check_conformance", "NotConforming"), _checks(), module=TESTING),
    Group("The fake handle", ("FakeHandle", "FakeWaitingPod"), module=TESTING),
    Group(
        "A whole cluster",
        ("virtual_cluster", "VirtualCluster", "run_virtual", "ObjectChange", "NotSettled", "Refused", "UnknownNode"),
        module=TESTING,
    ),
    Group("Recordings", ("replayed_cluster", "ReplayResult"), module=TESTING),
    Group(
        "Pods and nodes",
        (
            "pod",
            "container",
            "node",
            "taint",
            "toleration",
            "node_affinity",
            "term",
            "requirement",
            "pod_affinity",
            "pod_anti_affinity",
            "pod_term",
            "spread_constraint",
            "label_selector",
        ),
        module=TESTING,
    ),
    Group(
        "Other objects",
        (
            "metadata",
            "owner_reference",
            "namespace",
            "priority_class",
            "disruption_budget",
            "service",
            "replica_set",
            "replication_controller",
            "stateful_set",
            "custom_resource_definition",
        ),
        module=TESTING,
    ),
    Group(
        "Volumes",
        (
            "persistent_volume",
            "persistent_volume_claim",
            "storage_class",
            "csi_driver",
            "csi_node",
            "csi_storage_capacity",
            "volume_attachment",
        ),
        module=TESTING,
    ),
    Group(
        "Devices and pod groups",
        (
            "device",
            "device_class",
            "device_request",
            "sub_request",
            "resource_claim",
            "resource_slice",
            "device_taint_rule",
            "pod_group",
            "composite_pod_group",
        ),
        module=TESTING,
    ),
    Group(
        "Strategies",
        (
            "nodes",
            "pods",
            "labels",
            "taints",
            "tolerations",
            "affinities",
            "clusters",
            "Cluster",
            "histories",
            "History",
            "arguments",
        ),
        "For Hypothesis; in `trio_sched.testing.strategies`.\n",
        module=f"{TESTING}.strategies",
    ),
)
API_PAGE: Final = ApiPage("testing.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
