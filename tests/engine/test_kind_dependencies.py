import pytest

from trio_sched.engine.kind_dependencies import KindDependencies


def test_what_is_asked_for_an_answer_that_is_kept_is_noted() -> None:
    asked = KindDependencies()
    with asked.recording():
        asked.note("Service")
        asked.note("Namespace")
        asked.note("Service")
    assert asked.kinds == {"Service", "Namespace"}


def test_what_is_asked_for_the_moment_is_not() -> None:
    asked = KindDependencies()
    asked.note("Service")
    with asked.recording():
        pass
    asked.note("Namespace")
    assert asked.kinds == set()


def test_one_answer_inside_another_does_not_end_the_outer_one() -> None:
    asked = KindDependencies()
    with asked.recording():
        with asked.recording():
            asked.note("Service")
        asked.note("Namespace")
    assert asked.kinds == {"Service", "Namespace"}
    assert not asked._recordings


def test_an_answer_that_fails_ends_the_notes_too() -> None:
    asked = KindDependencies()
    with pytest.raises(LookupError), asked.recording():
        raise LookupError
    asked.note("Service")
    assert asked.kinds == set()
