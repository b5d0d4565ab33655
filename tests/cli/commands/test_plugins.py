import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

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
    code = main(["plugins", "--output", "json"])
    found = {plugin["name"]: plugin for plugin in json.loads(capsys.readouterr().out)}
    assert code == (ExitCode.FAILURE if any("error" in plugin for plugin in found.values()) else ExitCode.OK)
    return found


def test_built_in_plugins_are_listed_like_all_others(install_plugin: InstallPlugin, capsys: Capture) -> None:
    site = install_plugin("Good", GOOD)
    found = listed(capsys)
    assert found["Good"] == {
        "name": "Good",
        "distributions": ["somebodys-plugin 1.2"],
        "object": "plugin_good_somebodys_plugin:Good",
        "file": str(site / "plugin_good_somebodys_plugin.py"),
        "line": 4,
        "extensionPoints": ["preEnqueue", "permit"],
        "hooks": ["pre_enqueue", "permit"],
        "requiresApi": None,
        "api": "1.2",
        "watches": [],
        "writes": {},
        "dependsOn": None,
        "onFailure": "closed",
        "args": None,
    }
    assert found["TaintToleration"]["distributions"] == ["trio-sched 0.2.0"]
    assert found["TaintToleration"]["extensionPoints"] == ["filter", "preScore", "score"]


def test_a_broken_plugin_is_listed_with_its_error(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Broken", "import nothing_of_that_name")
    found = listed(capsys)
    assert "failed to import: ModuleNotFoundError" in found["Broken"]["error"]
    assert "error" not in found["NodeName"]
    assert main(["plugins"]) == ExitCode.FAILURE
    printed = capsys.readouterr().out
    assert "cannot be used, see below" in printed
    assert "Broken: plugin 'Broken' from somebodys-plugin 1.2" in printed


def test_a_name_offered_twice_names_both_offers(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", GOOD)
    install_plugin("Good", GOOD, distribution="another")
    found = listed(capsys)["Good"]
    assert sorted(found["distributions"]) == ["another 1.2", "somebodys-plugin 1.2"]
    assert "uninstall all but one" in found["error"]


DECLARED = GOOD.replace(
    '    name = "Good"',
    """    name = "Good"
    requires_api = "1.0"
    from trio_sched.plugin_api import CustomResource
    watches = ("Service", CustomResource("example.com", "v1", "Quota"))
    writes = {"Pod": ("patch",)}
    on_failure = "open"
    from attrs import frozen
    @frozen
    class Args:
        seats: int = 3
""",
)


def test_what_a_class_declares_is_listed(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", DECLARED)
    found = listed(capsys)["Good"]
    assert (found["requiresApi"], found["watches"], found["writes"]) == (
        "1.0",
        ["Service", "quotas.v1.example.com"],
        {"Pod": ["patch"]},
    )
    assert found["onFailure"] == "open"
    assert found["args"]["properties"]["seats"] == {"type": "integer", "default": 3}


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("2.0", "install a trio-sched with plugin API 2.0, or a release of the plugin for API 1"),
        ("1.7", "with plugin API 1.2: install a trio-sched with plugin API 1.7"),
        ("one", """its requires_api must be "major.minor", '1.2' for instance; it is 'one'"""),
    ],
)
def test_a_plugin_of_another_api_is_refused_in_one_line(
    install_plugin: InstallPlugin, capsys: Capture, version: str, error: str
) -> None:
    install_plugin("Good", DECLARED.replace('"1.0"', repr(version)))
    found = listed(capsys)["Good"]["error"]
    assert found.startswith("plugin 'Good' from somebodys-plugin 1.2 (plugin_good_somebodys_plugin:Good)")
    assert found.endswith(error)
    assert "\n" not in found


def test_a_plugin_that_imports_what_a_newer_api_has_is_told_so(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", "from trio_sched.plugin_api import NotYetThere")
    assert "It may need a newer plugin API than 1.2" in listed(capsys)["Good"]["error"]


def test_the_schema_of_arguments_is_printed(install_plugin: InstallPlugin, capsys: Capture) -> None:
    install_plugin("Good", DECLARED)
    assert main(["plugins", "--schema", "Good"]) == ExitCode.OK
    schema = json.loads(capsys.readouterr().out)
    jsonschema.validate({"seats": 5}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"seat": 5}, schema)
    assert main(["plugins", "--schema", "Goood"]) == ExitCode.FAILURE
    assert "did you mean 'Good'?" in capsys.readouterr().err


FIT = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]}}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("NodeResourcesFit", FIT, {"scoringStrategy": {"typ": "x"}}),
        ("DynamicResources", {"filterTimeout": "10s"}, {"filterTimeout": "10"}),
        ("PodTopologySpread", {"defaultConstraints": [{"maxSkew": 1}]}, {"defaultConstraints": {}}),
        ("NodeName", {}, {"x": 1}),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": 1}, {"minCandidateNodesAbsolute": 2**31}),
    ],
)
def test_kubernetes_own_plugins_have_schemas_too(
    capsys: Capture, name: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    assert main(["plugins", "--schema", name]) == ExitCode.OK
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(good, schema)
    jsonschema.validate({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{name}Args"}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, schema)
