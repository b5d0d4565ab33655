"""Event handlers of kinds, as the daemon gets them from the plugins of its profiles."""

from collections.abc import Callable
from typing import Any

from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.objects.changes import Changes, Listed
from trio_sched.plugin_api import Action


def handler_of(
    delivery: Delivery, kind: str, resource: str, actions: Action
) -> Callable[[Listed[Any] | Changes[Any]], None]:
    """The handler of a watch of *kind*, for whose *actions* on *resource* a plugin has registered."""
    handlers = delivery.event_handlers
    handlers.wanted_kinds = {**handlers.wanted_kinds, kind: (resource, actions)}
    return delivery.handler(kind)
