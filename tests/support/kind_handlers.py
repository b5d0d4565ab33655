"""Event handlers of kinds, as the daemon gets them from the plugins of its profiles."""

from collections.abc import Callable
from typing import Any

from trio_sched.daemon.watching.event_handlers import EventHandlers
from trio_sched.objects.changes import Changes, Listed
from trio_sched.plugin_api import Action


def handler_of(
    event_handlers: EventHandlers, kind: str, resource: str, actions: Action
) -> Callable[[Listed[Any] | Changes[Any]], None]:
    """The handler of a watch of *kind*, for whose *actions* on *resource* a plugin has registered."""
    event_handlers.wanted_kinds = {**event_handlers.wanted_kinds, kind: (resource, actions)}
    return event_handlers.handler(kind)
