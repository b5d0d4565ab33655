import pytest

from trio_sched.engine.evaluation.kind_dependencies import KindDependencies


def test_kinds_read_while_recording_are_noted() -> None:
    asked = KindDependencies()
    with asked.recording():
        asked.note("Service")
        asked.note("Namespace")
        asked.note("Service")
    assert asked.kinds == {"Service", "Namespace"}


def test_kinds_read_outside_a_recording_are_not_noted() -> None:
    asked = KindDependencies()
    asked.note("Service")
    with asked.recording():
        pass
    asked.note("Namespace")
    assert asked.kinds == set()


def test_a_nested_recording_does_not_end_the_outer_one() -> None:
    asked = KindDependencies()
    with asked.recording():
        with asked.recording():
            asked.note("Service")
        asked.note("Namespace")
    assert asked.kinds == {"Service", "Namespace"}
    assert not asked._recordings


def test_an_exception_ends_the_recording() -> None:
    asked = KindDependencies()
    with pytest.raises(LookupError), asked.recording():
        raise LookupError
    asked.note("Service")
    assert asked.kinds == set()
