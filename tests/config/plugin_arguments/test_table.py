"""The files of the plugins' arguments are alike, and the table has all of them."""

import ast
import inspect
from types import ModuleType
from typing import Any, get_args

import pytest

from trio_sched.config.decode import decode_strictly
from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.plugin_arguments.table import (
    ARGUMENT_STRUCTS,
    PLUGIN_ARGUMENTS,
    argument_problems,
    complete_arguments,
    dump_arguments,
)
from trio_sched.documents.json_reader import read_json
from trio_sched.go.text import json_text
from trio_sched.plugin_api.arguments import PluginArguments


@pytest.mark.parametrize("plugin", PLUGIN_ARGUMENTS)
def test_every_file_has_the_same_names_in_the_same_order(plugin: str) -> None:
    file: Any = PLUGIN_ARGUMENTS[plugin]
    assert isinstance(file, ModuleType)
    assert _public_names(file) == ["FIELDS", "defaults", "convert", "validate", "dump"]


def _public_names(module: ModuleType) -> list[str]:
    """What *module* defines itself, in its order."""
    names = []
    for statement in ast.parse(inspect.getsource(module)).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return [name for name in names if not name.startswith("_")]


def test_every_class_of_arguments_has_a_row() -> None:
    assert {f"{plugin}Args" for plugin in PLUGIN_ARGUMENTS} == {cls.__name__ for cls in get_args(PluginArguments)}


@pytest.mark.parametrize("plugin", PLUGIN_ARGUMENTS)
def test_the_defaults_are_valid_and_survive_being_written_and_read(plugin: str) -> None:
    default = complete_arguments(plugin, {}, DEFAULT_GATES)
    assert list(argument_problems(default, "", DEFAULT_GATES)) == []
    given, strict_errors = decode_strictly(read_json(json_text(dump_arguments(default))), ARGUMENT_STRUCTS[plugin])
    assert strict_errors == []
    assert complete_arguments(plugin, given, DEFAULT_GATES) == default
