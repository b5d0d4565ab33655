"""Writes docs/reference/hooks.md from the docstrings of the hooks: ``python -m contrib.docs.make_hooks``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from contrib.docs.api_pages import link_to
from contrib.docs.docstrings import inline
from contrib.docs.pages import Page
from trio_sched.config.wire_types import ALL_POINTS
from trio_sched.daemon.limits import HOOK_SECONDS, PRE_BIND_SECONDS, STUCK_SECONDS
from trio_sched.plugin_api.extension_points import FORMER_POINT_OF_HOOK, HOOK_NAMES, POINT_OF_HOOK, ExtensionPoints

HEADER: Final = f"""\
# Hooks

The hooks of plugins, in the order a pod meets them. A plugin is a class with a `name` and an
`__init__(self, args, handle)`; its methods marked with `@hookimpl` implement the hook of the same name. A method may
name fewer arguments than are listed here, never others. With types, as mypy wants them in strict mode:

```python
from trio_sched.plugin_api import Action, EventRegistration, Handle, NodeView, Pod, Resource, Status
from trio_sched.plugin_api import hookimpl, on, unresolvable


class TeamNodes:
    name = "TeamNodes"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        is_right = node.labels.get("team") == pod.labels.get("team")
        return None if is_right else unresolvable("node(s) belonged to another team")

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
        ]
```

Only `post_filter`, `pre_bind`, `bind` and `post_bind` may be `async def`, and `run` must be; any other hook that is
`async def` is refused when the plugin is loaded. They await what [trio](https://trio.readthedocs.io) can await: methods
of the handle, `trio.sleep`, nurseries, `trio.to_thread.run_sync` for what blocks; not asyncio. So that no pod is held
for ever, they are cancelled:

| hook | after | what follows |
| --- | --- | --- |
| `post_filter`, `bind` | {HOOK_SECONDS:g} s | the attempt ends with an error, and the pod goes to backoff |
| `pre_bind` | {PRE_BIND_SECONDS:g} s, or `pre_bind_timeout_seconds` | the same; long before, the log has a warning |
| `post_bind` | {HOOK_SECONDS:g} s | the pod is bound all the same |
| `run` | never | |

What `bind`, `post_bind` and `post_filter` await of the API server or of extenders through the handle does not count:
such requests have limits of their own. A thread cannot be cancelled: what its hook returns counts when it is done. A
hook that computes instead of awaiting is cancelled by nothing; nothing else runs meanwhile, and after
{STUCK_SECONDS:g} s the log says where it stands.

mypy and pyright compare the hooks of a class with these, and `watches`, `writes` and the like too, if it inherits from
`ExtensionPoints`: `class TeamNodes(ExtensionPoints)`. Then its hooks have to name all arguments, here also `state`.
Nothing else changes. `MaybeAwaitable[T]` is `T`, or in an `async def` what is awaited for it.

A hook that raises, or returns anything but what is listed for it, ends the attempt for this pod and nothing else: the
pod goes back to the queue, its `FailedScheduling` event and its condition name the plugin and what was wrong, and the
log has one line with distribution, hook, fix and traceback. Where a failure has another effect, the hook says so. A
hook that returns a Status may return `failure("why")`: the attempt ends too, but the log has no traceback.

What they get is described in [columns](columns.md) and [objects](objects.md), what they return in
[statuses](statuses.md), and what else a plugin can use in [the handle](handle.md).

*Switched on at* is the key in the configuration file; `multiPoint` switches on all points of a plugin.

This page is made from the docstrings: change `trio_sched/plugin_api/extension_points.py` and run `make docs`.
"""
_WRITTEN: Final = {point: written for written, point in ALL_POINTS.items()}
_PART: Final = re.compile(r"\n+(When|Args|Return): ")


def text() -> str:
    """The whole page."""
    return "\n".join([HEADER, *(section for hook in HOOK_NAMES for section in _section(hook))])


def _section(hook: str) -> Iterator[str]:
    function = getattr(ExtensionPoints, hook)
    yield f"## {hook}\n"
    yield f"```python\n{_signature(hook, function)}\n```\n"
    text = _PART.sub(lambda found: f"\n\n*{found[1]}:* ", inspect.getdoc(function) or "")
    yield inline(text, partial(link_to, PAGE.name, None)) + "\n"
    point = POINT_OF_HOOK.get(hook)
    former = FORMER_POINT_OF_HOOK.get(hook)
    where = f"`{_WRITTEN[point]}`" if point else "any point of the plugin"
    yield f"Switched on at: {where}{f'; before 1.37 at `{_WRITTEN[former]}`' if former else ''}.\n"


def _signature(hook: str, function: Callable[..., Any]) -> str:
    start = "async def" if inspect.iscoroutinefunction(function) else "def"
    return f"{start} {hook}{inspect.signature(function)}".replace("'", "")


PAGE: Final = Page("hooks.md", text)

if __name__ == "__main__":
    PAGE.write()
