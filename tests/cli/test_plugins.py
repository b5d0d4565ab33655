import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trio_sched.cli.exit_code import ExitCode
from trio_sched.cli.main import main

InstallPlugin = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

GOOD = """
from trio_sched.plugin_api import hookimpl

class Good:
    name = "Good"
    def __init__(self, args, handle): pass
    @hookimpl
    def permit(self, pod): ...
    @hookimpl
    def pre_enqueue(self, pod): ...
"""


def listed(capsys: Capture) -> dict[str, dict]:
    assert main(["plugins", "--output", "json"]) == ExitCode.OK
    return {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)}


def test_built_in_plugins_are_listed_like_all_others(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", GOOD)
    found = listed(capsys)
    assert found["Good"] == {
        "name": "Good",
        "distributions": ["somebodys-plugin 1.2"],
        "extensionPoints": ["preEnqueue", "permit"],
    }
    assert found["TaintToleration"]["distributions"] == ["trio-sched 0.1.0"]
    assert found["TaintToleration"]["extensionPoints"] == ["filter", "preScore", "score"]


def test_a_broken_plugin_is_listed_with_its_error(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Broken", "import nothing_of_that_name")
    found = listed(capsys)
    assert "failed to import: ModuleNotFoundError" in found["Broken"]["error"]
    assert "error" not in found["NodeName"]
    assert main(["plugins"]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "cannot be used, see below" in printed
    assert "Broken: plugin 'Broken' from somebodys-plugin 1.2" in printed


def test_a_name_offered_twice_names_both_offers(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", GOOD)
    install_plugin("Good", GOOD, distribution="another")
    found = listed(capsys)["Good"]
    assert sorted(found["distributions"]) == ["another 1.2", "somebodys-plugin 1.2"]
    assert "uninstall all but one" in found["error"]
