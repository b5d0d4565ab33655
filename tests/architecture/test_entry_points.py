"""Our own plugins are found the way everybody's are, under Kubernetes' names."""

import importlib
import inspect
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.engine.registry.plugin_registry import check_contract, points_of
from trio_sched.plugin_api.extension_points import PROJECT

ROOT: Final = Path(__file__).parents[2]
DECLARED: Final[dict[str, str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    PROJECT
]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@pytest.mark.parametrize("name", DECLARED)
def test_a_plugin_stands_in_the_module_of_its_name(name: str) -> None:
    module, _colon, attribute = DECLARED[name].partition(":")
    assert (module.rpartition(".")[2], attribute) == (snake_case(name), name)
    plugin = getattr(importlib.import_module(module), attribute)
    check_contract(name, module, plugin)


@pytest.mark.parametrize("name", DECLARED)
def test_a_plugin_extends_the_points_that_it_extends_in_kubernetes(name: str) -> None:
    module, _colon, attribute = DECLARED[name].partition(":")
    plugin = getattr(importlib.import_module(module), attribute)
    assert points_of(plugin) == KNOWN_PLUGINS[name]


def test_every_class_with_hooks_is_declared() -> None:
    modules = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "plugins_builtin").rglob("*.py")
        if path.stem != "__init__"
    ]
    found = {
        f"{module}:{name}"
        for module in modules
        for name, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value) and value.__module__ == module and not name.startswith("_") and points_of(value)
    }
    assert found == set(DECLARED.values())


def test_the_modules_beside_the_folders_are_plugins_or_private() -> None:
    modules = {path.stem for path in (ROOT / "plugins_builtin").glob("*.py") if not path.stem.startswith("_")}
    assert modules <= {snake_case(name) for name in DECLARED}


def test_what_is_installed_is_what_the_project_declares() -> None:
    ours = {found.name: found.value for found in entry_points(group=PROJECT) if found.value.startswith("plugins_")}
    assert ours == DECLARED
