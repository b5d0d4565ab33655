"""Checks events_to_register and the hint functions: what they return, and whether anybody asks for them."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.daemon.plugins.kind_mistakes import kind_mistakes
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_hint
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.queue.queueing_hints import build_hint_table
from trio_sched.plugin_api.cluster_events import Resource
from trio_sched.testing.builders import pod
from trio_sched.testing.conformance.subject import Subject


def registration_problems(subject: Subject) -> Iterator[str]:
    """What is wrong with the registrations of a plugin, and with what its hint functions return."""
    trial = subject.fresh()
    profile = trial.profile
    try:
        table = build_hint_table(profile)
    except PluginError as error:
        yield str(error)
        return
    yield from kind_mistakes(trial.plugin, table.events_of(subject.name))
    waiting = pod("waiting")
    for entry in table.entries:
        changes = ((None, None), (None, waiting), (waiting, None)) if entry.event.resource == Resource.POD else ()
        for old, new in changes:
            if entry.hint is None:
                continue
            try:
                call_hint(entry.hint, waiting, old, new)
            except HookFailed as failed:
                if failed.__cause__ is None:  # hints may raise for these objects, but not return something else
                    yield str(failed)
    if profile.events_to_register and not profile.rejector_plugins:
        yield "events_to_register is never asked for: it has no hook that can turn a pod away"
