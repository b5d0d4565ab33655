"""A hook that nobody explains, or that nobody has ever implemented, is not a hook."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from trio_sched.plugin_api.extension_points import HOOK_NAMES, POINT_OF_HOOK, ExtensionPoints

ROOT: Final = Path(__file__).parents[2]


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_says_when_it_is_called_and_what_each_answer_means(hook: str) -> None:
    specified = getattr(ExtensionPoints, hook)
    explanation = inspect.getdoc(specified) or ""
    assert "\nWhen: " in explanation
    if inspect.signature(specified).return_annotation not in ("None", "MaybeAwaitable[None]"):
        assert "\nReturn: " in explanation


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_every_hook_explains_its_arguments_by_type(hook: str) -> None:
    parameters = list(inspect.signature(getattr(ExtensionPoints, hook)).parameters.values())[1:]
    assert all(parameter.annotation is not parameter.empty for parameter in parameters)


def implementations(folder: str) -> Iterator[str]:
    texts = (path.read_text() for path in (ROOT / folder).rglob("*.py"))
    for text in (text for text in texts if "@hookimpl" in text):  # to parse all takes seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                if "hookimpl" in marks:
                    yield node.name


def test_every_hook_is_implemented_by_a_built_in_plugin_or_by_a_plugin_of_the_tests() -> None:
    implemented = {*implementations("plugins_builtin"), *implementations("tests"), *implementations("contrib")}
    assert sorted(set(HOOK_NAMES) - implemented) == []


def test_every_point_of_the_configuration_belongs_to_a_hook() -> None:
    assert set(POINT_OF_HOOK) <= set(HOOK_NAMES)
    beside = {"events_to_register", "sign", "add_pod", "remove_pod", "normalize_score", "pre_bind_pre_flight", "run"}
    beside |= {"clauses", "normalize_placement_score", "placement_feasible"}
    assert set(HOOK_NAMES) - set(POINT_OF_HOOK) == beside
