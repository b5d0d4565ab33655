"""The table of flags."""

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.engine.queue.scheduling_queue import MAX_IN_UNSCHEDULABLE_SECONDS
from trio_sched.objects.timestamps import SECOND_NS


def test_defaults_that_others_have_too_are_theirs() -> None:
    flags = parse_flags([])
    assert flags["pod-max-in-unschedulable-pods-duration"] == MAX_IN_UNSCHEDULABLE_SECONDS * SECOND_NS
    assert flags["secure-port"] == ServingSettings().port
