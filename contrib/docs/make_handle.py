"""Writes docs/reference/handle.md from the docstrings of the handle: ``python -m contrib.docs.make_handle``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import ApiPage, Group
from trio_sched.daemon.watching.watched_kinds import KINDS, WATCHED_ANYWAY

HEADER: Final = """\
# Handle

What the scheduler offers to a plugin. Each plugin of each profile gets a handle of its own, as the second argument of
its constructor:

```python
from trio_sched.plugin_api import Handle, hookimpl


class Quiet:
    name = "Quiet"
    watches = ("Namespace",)  # kinds that it reads
    writes = {"Namespace": ("patch",)}  # kinds that it writes, with the verbs

    def __init__(self, args: None, handle: Handle) -> None:
        self.handle = handle

    @hookimpl
    async def run(self) -> None:
        self.handle.log.info("there are %d nodes", len(list(self.handle.objects("Node"))))
```

In tests, [`FakeHandle`](testing.md#fakehandle) takes its place. Everything here is imported from
`trio_sched.plugin_api`.

This page is made from the docstrings: change `trio_sched/plugin_api/handle.py` and its like, and run `make docs`.
"""
CLASS_ATTRIBUTES: Final = """\
What a class may declare besides its hooks:

| attribute | default | meaning |
| --- | --- | --- |
| `name: str` | required | the name in the configuration file, and the key of the entry point |
| `Args: type` | no arguments | the class of its [arguments](arguments.md) |
| `requires_api: str` | any | the `API_VERSION` that it needs, `"1.0"`: that minor version or a later one |
| `watches: tuple` | `()` | the kinds that it reads through the handle, and has not registered events for |
| `writes: dict` | `{}` | all that it writes: verbs by kind, `{"ResourceClaim/status": ("patch",)}` |
| `depends_on: frozenset` | not cached | [inputs](statuses.md#input) of its answers, with [`sign`](hooks.md#sign) |
| `on_failure: str` | `"closed"` | what becomes of pods when it fails: `"closed"`, `"open"` or `"skip:3"` |
| `pre_bind_timeout_seconds: float` | `600` | after how long its [`pre_bind`](hooks.md#pre_bind) is cancelled |
| `run_once_per_process: bool` | `False` | whether [`run`](hooks.md#run) runs for the first profile only |
| `run_on_leader_only: bool` | `False` | whether [`run`](hooks.md#run) runs only while this replica leads |

`trio-sched rbac` makes the roles from `watches`, `writes` and the registered events. A write that is not declared
works in tests, with a warning, and is refused by a cluster with these roles. For linters that ask for the type of
`writes`: `ClassVar[Mapping[str | CustomResource[Any], tuple[str, ...]]]`.
"""


def _kinds() -> str:
    """What can be named in ``watches``, in events and in the calls of the handle."""
    by_version: dict[str, list[str]] = {}
    for name, kind in {**WATCHED_ANYWAY, **KINDS}.items():
        by_version.setdefault(kind.api_version, []).append(f"`{name}`")
    rows = "\n".join(f"| `{version}` | {', '.join(names)} |" for version, names in by_version.items())
    return f"""\
Kinds that are read and written by their names, as objects of [these classes](objects.md):

| version | kinds |
| --- | --- |
{rows}

Pods and nodes need not be in `watches`; the others are watched only if a plugin of the configuration names them there
or registers for their events. Any other kind of Kubernetes, and custom resources, are declared with
[`CustomResource`](#customresource); as plain text, `"cronjobs.v1.batch"` or `"secrets.v1"`, they have `metadata`,
`spec` and `status` only.
"""


GROUPS: Final = (
    Group("What a plugin declares", ("API_VERSION",), f"{CLASS_ATTRIBUTES}\n{_kinds()}"),
    Group("The handle", ("Handle",)),
    Group("Custom resources", ("CustomResource", "CustomObject")),
    Group("Log and metrics", ("Log", "Metrics", "Counter", "Gauge", "Histogram")),
    Group("HTTP", ("Http", "HttpRequest", "HttpResponse", "HttpFailed")),
    Group("Pods without a node", ("PendingPod", "QueueState", "WaitingPod", "PodGroupState")),
    Group(
        "Preemption", ("DryRun", "Victims", "Budget", "BudgetsByNamespace", "budgets_of", "started_at", "NOT_STARTED")
    ),
    Group(
        "Errors", ("KindNotWatched", "ApiRequestFailed", "NotLeading", "ObjectGone", "WriteConflict", "OutcomeUnknown")
    ),
)
API_PAGE: Final = ApiPage("handle.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
