"""Writes docs/reference/statuses.md from what hooks take and return: ``python -m contrib.docs.make_statuses``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import ApiPage, Group
from contrib.docs.pages import table
from trio_sched.engine.hooks.return_values import SUPPORTED
from trio_sched.plugin_api.extension_points import HOOK_NAMES
from trio_sched.plugin_api.status import Code

HEADER: Final = """\
# Statuses

What hooks return, and what they get besides pods and nodes. None is success; a rejection has a reason for users:

```python
from trio_sched.plugin_api import Verdicts, hookimpl, unschedulable


class Roomy:
    name = "Roomy"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def filter(self, pod, nodes):
        return Verdicts.where(nodes.pod_count < 50, otherwise=unschedulable("node(s) had too many pods"))
```

- [`unschedulable`](#unschedulable): removing other pods could help, so preemption looks at the node.
- [`unresolvable`](#unresolvable): it could not.
- [`pending`](#pending): something is under way that will make it fit; the pod is queued without backoff when one of the
  plugin's events says that it has happened.
- [`failure`](#failure): the plugin failed. So it did if it raises, or returns a code that the hook does not take.

Everything here is imported from `trio_sched.plugin_api`.

This page is made from the code: change `trio_sched/plugin_api/status.py` and its like, and run `make docs`.
"""
_SHOWN: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING, Code.WAIT, Code.SKIP)


def _codes() -> str:
    heads = ("hook", "`unschedulable`", "`unresolvable`", "`pending`", "`not_yet`", "`SKIP`")
    rows = [
        (f"[`{hook}`](hooks.md#{hook})", *("yes" if code in SUPPORTED[hook] else "" for code in _SHOWN))
        for hook in HOOK_NAMES
        if SUPPORTED.get(hook)
    ]
    text = (
        "Which statuses a hook takes; any other one is a failure of the plugin. All take None, and `failure` as a\n"
        "failure that is not logged with a traceback. `post_filter` returns a\n"
        "[`PostFilterResult`](#postfilterresult), whose status may be the first three. Hooks that are not here take\n"
        "none.\n\n"
    )
    return text + table(heads, rows)


GROUPS: Final = (
    Group(
        "Status", ("Status", "unschedulable", "unresolvable", "pending", "not_yet", "failure", "SKIP", "Code"), _codes()
    ),
    Group("Answers about nodes", ("Verdicts", "PreFilterResult", "Input", "Domain")),
    Group("Scores", ("int_scores", "default_normalize_score", "MAX_SCORE")),
    Group("Other answers", ("Wait", "PostFilterResult", "PreFlight")),
    Group("What hooks get", ("CycleState", "Diagnosis", "NodeStatuses", "fit_error", "QueuedPod")),
    Group(
        "Explanations",
        ("Clause", "Change", "Edit", "edit_pod", "edit_node", "delete_pod"),
        "What the hook [`clauses`](hooks.md#clauses) returns, and what a status may carry: [how to explain what your\n"
        "plugin asks for](../how_to/explain_what_your_plugin_asks_for.md).",
    ),
    Group(
        "Texts",
        ("quote", "some_names", "nearest_name", "amount_text", "quantity_text", "smaller_request"),
        "For the names of objects and for amounts in reasons, errors and causes.",
    ),
    Group(
        "Pod groups",
        (
            "PodGroupInfo",
            "PodGroupTree",
            "Placement",
            "PlacementProgress",
            "PlacementAssignments",
            "PodGroupTrial",
            "PodGroupPostFilterResult",
        ),
    ),
    Group("Hooks", ("hookimpl", "ExtensionPoints"), "Each of them is in [hooks](hooks.md).", has_methods=False),
)
API_PAGE: Final = ApiPage("statuses.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
