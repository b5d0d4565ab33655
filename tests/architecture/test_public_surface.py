"""The two rooms that promise stability say exactly what they promise."""

from types import ModuleType

import pytest

import trio_sched.plugin_api
import trio_sched.testing


@pytest.mark.parametrize("room", [trio_sched.plugin_api, trio_sched.testing], ids=lambda module: module.__name__)
def test_all_is_exactly_what_a_plugin_author_can_see(room: ModuleType) -> None:
    of_typing = {"TYPE_CHECKING", "Any"}
    visible = {n for n, v in vars(room).items() if not n.startswith("_") and not isinstance(v, ModuleType)} - of_typing
    lazily = set(vars(room).get("_OF_CLUSTERS", ()))
    assert sorted(room.__all__) == sorted(visible | lazily)


@pytest.mark.parametrize("room", [trio_sched.plugin_api, trio_sched.testing], ids=lambda module: module.__name__)
def test_every_public_class_and_function_is_documented(room: ModuleType) -> None:
    # Type aliases, markers and constants are documented where they are defined; they carry no docstring of their own.
    documentable = [getattr(room, name) for name in room.__all__ if callable(getattr(room, name))]
    own = [thing for thing in documentable if getattr(thing, "__module__", "").startswith("trio_sched.")]
    assert len(own) > 10
    assert [thing.__qualname__ for thing in own if not thing.__doc__] == []
