"""Our own plugins are found the way everybody's are, under Kubernetes' names."""

import importlib
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.engine.plugin_registry import check_contract, points_of
from trio_sched.plugin_api.extension_points import PROJECT

ROOT: Final = Path(__file__).parents[2]
DECLARED: Final[dict[str, str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    PROJECT
]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@pytest.mark.parametrize("name", DECLARED)
def test_a_plugin_stands_in_the_module_of_its_name(name: str) -> None:
    assert DECLARED[name] == f"plugins_builtin.{snake_case(name)}:{name}"
    module, _colon, attribute = DECLARED[name].partition(":")
    plugin = getattr(importlib.import_module(module), attribute)
    check_contract(name, module, plugin)


@pytest.mark.parametrize("name", DECLARED)
def test_a_plugin_extends_the_points_that_it_extends_in_kubernetes(name: str) -> None:
    module, _colon, attribute = DECLARED[name].partition(":")
    plugin = getattr(importlib.import_module(module), attribute)
    assert points_of(plugin) == KNOWN_PLUGINS[name]


def test_every_module_of_the_built_ins_is_a_plugin_or_private() -> None:
    modules = {path.stem for path in (ROOT / "plugins_builtin").glob("*.py") if not path.stem.startswith("_")}
    assert modules == {snake_case(name) for name in DECLARED}


def test_what_is_installed_is_what_the_project_declares() -> None:
    ours = {found.name: found.value for found in entry_points(group=PROJECT) if found.value.startswith("plugins_")}
    assert ours == DECLARED
