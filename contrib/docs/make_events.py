"""Writes docs/reference/events.md from the cluster events: ``python -m contrib.docs.make_events``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import ApiPage, Group
from contrib.docs.pages import table
from trio_sched.plugin_api.cluster_events import Action, Resource

HEADER: Final = """\
# Events

A pod that a plugin rejects waits until something happens that may make it fit. Which events these are, the plugin says
in [`events_to_register`](hooks.md#events_to_register); a hint says whether one of them is worth an attempt:

```python
from trio_sched.plugin_api import Action, Hint, Node, Pod, Resource, hookimpl, on


class TeamNodes:
    name = "TeamNodes"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def events_to_register(self):
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self.node_hint),
            on(Resource.ASSIGNED_POD, Action.DELETE, node_local=True),
            on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
        ]

    def node_hint(self, pod: Pod, old: Node | None, new: Node | None):
        is_right = new is not None and new.labels.get("team") == pod.labels.get("team")
        return Hint.QUEUE if is_right else Hint.SKIP
```

- Register everything that can change an answer of yours from no to yes; what is missing keeps pods waiting for up to
  five minutes. The check `events` of [conformance](testing.md#conformance_test) finds what is missing.
- A gate that a controller opens with an annotation of the pod registers
  `on(Resource.TARGET_POD, Action.UPDATE_POD_ANNOTATION)`; `UPDATE` would be told of every change.
- Reasons that no object shows: a time is [`Handle.retry_after`](handle.md#handleretry_after), data of other servers
  that `run` fetches are [`Handle.activate`](handle.md#handleactivate) for the pods that may fit now.
- Without `events_to_register` each event is worth an attempt; with an empty list, none.
- A hint gets the object before and after: *old* is None for an added one, *new* for a deleted one. It is called for
  every waiting pod, so it must be fast.

This page is made from the code: change `trio_sched/plugin_api/cluster_events.py` and run `make docs`.
"""
_MEANINGS: Final = {
    Action.ADD: "it is there now; of AssignedPod: a pod has got a node",
    Action.DELETE: "it is gone",
    Action.UPDATE_NODE_ALLOCATABLE: "of a Node: other `status.allocatable`",
    Action.UPDATE_NODE_LABEL: "of a Node: other labels",
    Action.UPDATE_NODE_TAINT: "of a Node: other taints, or it is no longer unschedulable",
    Action.UPDATE_NODE_CONDITION: "of a Node: another status of a condition",
    Action.UPDATE_NODE_ANNOTATION: "of a Node: other annotations",
    Action.UPDATE_NODE_DECLARED_FEATURE: "of a Node: other declared features",
    Action.UPDATE_POD_LABEL: "of a pod: other labels",
    Action.UPDATE_POD_SCALE_DOWN: "of a pod: it requests less",
    Action.UPDATE_POD_TOLERATION: "of a pod: another number of tolerations",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "of a pod: its last scheduling gate is gone",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "of a pod: claims were made for it",
    Action.UPDATE: "any update: all of the above, and those of other kinds, which have no finer ones",
    Action.ALL: "anything of all that",
    Action.UPDATE_POD_ANNOTATION: "of a pod: other annotations; it is ours alone, so ALL does not contain it",
    Action.UPDATE_NODE_PREEMPTION_POLICY: "of a Node: other `spec.podPreemptionPolicy`; with `--emulated-version=1.37`",
    Action.UPDATE_POD_SCALE_UP: "of a pod: it requests more; an `UPDATE` without `--emulated-version=1.37`",
}
_ABOUT: Final = {
    "POD": "any pod: all of the following",
    "ASSIGNED_POD": "a pod with a node",
    "UNSCHEDULED_POD": "another pod without a node",
    "TARGET_POD": "the waiting pod itself",
    "UNSCHEDULABLE_POD": "both of these: the name in kube-scheduler 1.36, whose metrics say it of either",
    "WILDCARD": "anything",
}
ACTIONS: Final = """\
Actions are combined with `|`. An update of a pod that changes nothing in this list is an event with `UPDATE`: only who
registers for `UPDATE`, all of it, gets that.

"""


def _actions() -> str:
    rows = ((f"`Action.{action.name}`", _MEANINGS[action]) for action in Action.__members__.values())
    return ACTIONS + table(("action", "what has happened"), rows)


def _resources() -> str:
    names = [name for name in vars(Resource) if name.isupper()]
    rows = ((f"`Resource.{name}`", f"`{getattr(Resource, name)}`", _ABOUT.get(name, "")) for name in names)
    text = (
        "A custom resource is named by its [`CustomResource`](handle.md#customresource), or by the text\n"
        "`plural.version.group`; then hints get objects with `metadata` only.\n\n"
    )
    return text + table(("constant", "value", "what it is"), rows)


GROUPS: Final = (
    Group("Registering", ("on", "EventRegistration", "Hint")),
    Group("Kinds of objects", ("Resource",), _resources(), has_table=True),
    Group("What happens to them", ("Action",), _actions(), has_table=True),
    Group("Events", ("ClusterEvent",)),
)
API_PAGE: Final = ApiPage("events.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
