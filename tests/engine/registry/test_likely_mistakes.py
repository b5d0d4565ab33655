from typing import Any, ClassVar

import pytest
from attrs import frozen

from trio_sched.engine.registry.likely_mistakes import likely_mistakes
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api import ExtensionPoints, Input, Pod, hookimpl


class Marked:
    name: ClassVar[str] = "Marked"

    @hookimpl
    def filter_node(self, pod: Pod) -> None: ...


def test_a_method_with_the_name_of_a_hook_that_is_not_marked_is_said() -> None:
    class Forgetful(Marked):
        def reserve(self, pod: Pod) -> None: ...

        async def run(self) -> None: ...

        @staticmethod
        def sign(pod: Pod) -> None: ...

        def helper(self) -> None: ...

    found = likely_mistakes(Forgetful)
    assert [line.partition(" has the name of a hook")[0] for line in found] == [
        "Forgetful.sign",
        "Forgetful.reserve",
        "Forgetful.run",
    ]
    assert "so it is never called as one; put @hookimpl above it" in found[0]


def test_the_mark_of_a_base_does_not_count_for_a_method_that_replaces_it() -> None:
    class Replaced(Marked):
        def filter_node(self, pod: Pod) -> None: ...

    assert likely_mistakes(Replaced)[0].startswith("Replaced.filter_node has the name of a hook")


def test_a_base_is_named_as_the_place() -> None:
    class Base:
        def permit(self) -> None: ...

    class Derived(Base, Marked): ...

    assert likely_mistakes(Derived)[0].startswith("Base.permit has the name")


def test_inputs_without_a_signature_are_said() -> None:
    class Unsigned(Marked):
        depends_on = frozenset({Input.NODE})

    class Signed(Unsigned):
        @hookimpl
        def sign(self, pod: Pod) -> None: ...

    assert likely_mistakes(Unsigned)[0].startswith("Unsigned.depends_on has no effect without the hook sign")
    assert likely_mistakes(Signed) == []


@frozen
class SomeArgs:
    seats: int = 1


@pytest.mark.parametrize(
    ("attribute", "value", "wanted"),
    [
        ("args", SomeArgs, "Args"),
        ("Arg", SomeArgs, "Args"),
        ("depend_on", {Input.NODE}, "depends_on"),
        ("dependsOn", {Input.NODE}, "depends_on"),
        ("DEPENDS_ON", {Input.NODE}, "depends_on"),
        ("watch", ("Service",), "watches"),
        ("watched", ("Service",), "watches"),
    ],
)
def test_an_attribute_that_is_nearly_one_of_the_contract_is_said(attribute: str, value: Any, wanted: str) -> None:
    plugin = type("Near", (Marked,), {attribute: value})
    assert likely_mistakes(plugin) == [f"Near.{attribute} means nothing; did you mean {wanted!r}?"]


def test_what_is_neither_near_nor_a_value_is_fine() -> None:
    class Fine(Marked):
        watches = ("Service",)
        watched = 3
        sign = None
        named = "x"

        @property
        def depends_upon(self) -> int:
            return 1

        def kwargs(self) -> None: ...

    assert likely_mistakes(Fine) == []


def test_a_subclass_of_the_contract_is_fine() -> None:
    class Typed(ExtensionPoints, Marked):  # type: ignore[misc]  # the arguments that are taken differ
        pass

    assert likely_mistakes(Typed) == []


@pytest.mark.parametrize("name", PluginRegistry.discover().names)
def test_no_installed_plugin_has_one(name: str) -> None:
    assert likely_mistakes(PluginRegistry.discover().load(name)) == []
