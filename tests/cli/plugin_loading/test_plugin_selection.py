import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.main import main
from trio_sched.cli.plugin_loading.plugin_files import PluginFileError
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.engine.hooks.plugin_errors import PluginNotAllowed

InstallPlugin = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

GOOD = """
import os
os.environ["GOOD_WAS_IMPORTED"] = "1"
from trio_sched.plugin_api import hookimpl, unschedulable

class Good:
    name = "Good"
    def __init__(self, args, handle): pass
    @hookimpl
    def filter_node(self, pod, node): return unschedulable("from %s")
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Good}]}}}]
"""


@pytest.fixture(autouse=True)
def _not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOD_WAS_IMPORTED", "")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.py"
    path.write_text(GOOD % "file")
    return path


def test_the_flags_of_the_daemon_select_plugins() -> None:
    flags = parse_flags(["--plugin=a.py,b.py", "--plugins-dir", "d", "--deny-plugins=x*,y", "--allow_plugins=z"])
    assert PluginSelection.of_flags(flags) == PluginSelection(
        files=("a.py", "b.py"), folders=("d",), allowed=("z",), denied=("x*", "y")
    )


@pytest.mark.parametrize(
    ("selection", "rule"),
    [
        (PluginSelection(denied=["Goo*"]), "--deny-plugins=Goo*"),
        (PluginSelection(denied=["somebodys_plugin"]), "--deny-plugins=somebodys_plugin"),
        (PluginSelection(allowed=["Other"]), "--allow-plugins, which does not name it"),
        (PluginSelection(allowed=["Good"], denied=["*-plugin"]), "--deny-plugins=*-plugin"),
    ],
)
def test_what_is_excluded_is_not_imported(
    install_plugin: InstallPlugin, selection: PluginSelection, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    install_plugin("Good", GOOD % "package")
    registry = selection.registry()
    with pytest.raises(PluginNotAllowed) as caught:
        registry.load("Good")
    assert f"'Good' from somebodys-plugin 1.2 (plugin_good_somebodys_plugin:Good) is excluded by {rule}" in str(
        caught.value
    )
    assert not os.environ["GOOD_WAS_IMPORTED"]
    registry.load("NodeName")


def test_what_is_allowed_is_loaded(install_plugin: InstallPlugin) -> None:
    install_plugin("Good", GOOD % "package")
    for selection in (PluginSelection(allowed=["G*"]), PluginSelection(allowed=["Somebodys.Plugin"])):
        assert selection.registry().load("Good").name == "Good"


def test_an_excluded_distribution_does_not_make_a_name_ambiguous(install_plugin: InstallPlugin) -> None:
    install_plugin("Good", GOOD % "package")
    install_plugin("Good", GOOD % "another", distribution="another")
    registry = PluginSelection(denied=["another"]).registry()
    assert registry.load("Good").__module__ == "plugin_good_somebodys_plugin"


def test_a_file_takes_the_place_of_what_is_installed(
    install_plugin: InstallPlugin, good: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install_plugin("Good", GOOD % "package")
    caplog.set_level(logging.INFO)
    registry = PluginSelection(files=[str(good)]).registry()
    assert registry.source("Good") == f"{good}, line 6"
    assert "trio_sched_plugin_file" in registry.load("Good").__module__
    (record,) = [one for one in caplog.records if "takes the place" in one.message]
    assert record.__dict__["installed"] == "somebodys-plugin 1.2 (plugin_good_somebodys_plugin:Good)"
    with pytest.raises(PluginFileError, match="'Good' is excluded by --deny-plugins=Good"):
        PluginSelection(files=[str(good)], denied=["Good"]).registry()


def test_a_file_may_replace_a_plugin_of_kubernetes(small_cluster: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "fit.py"
    file.write_text(GOOD.replace('name = "Good"', 'name = "NodeResourcesFit"') % "the replacement")
    assert main(["simulate", "-f", str(small_cluster), "--plugin", str(file), "-o", "json"]) == ExitCode.OK
    assert "from the replacement" in capsys.readouterr().out


def test_simulate_uses_a_file(small_cluster: Path, good: Path, config: Path, capsys: Capture) -> None:
    arguments = ["simulate", "-f", str(small_cluster), "--config", str(config)]
    assert main([*arguments, "--plugin", str(good)]) == ExitCode.OK
    assert "from file" in capsys.readouterr().out
    assert main([*arguments, "--plugins-dir", str(good.parent)]) == ExitCode.OK
    assert "from file" in capsys.readouterr().out
    good.write_text("x = (")
    assert main([*arguments, "--plugin", str(good)]) == ExitCode.FAILURE
    assert f"{good}, line 1: SyntaxError" in capsys.readouterr().err


def test_simulate_refuses_a_configuration_that_enables_what_is_excluded(
    small_cluster: Path, config: Path, install_plugin: InstallPlugin, capsys: Capture
) -> None:
    install_plugin("Good", GOOD % "package")
    arguments = ["simulate", "-f", str(small_cluster), "--config", str(config), "--deny-plugins", "Good"]
    assert main(arguments) == ExitCode.FAILURE
    assert "is excluded by --deny-plugins=Good" in capsys.readouterr().err


def test_check_config_and_rbac_know_files(config: Path, good: Path, capsys: Capture) -> None:
    assert main(["check-config", str(config)]) == ExitCode.FAILURE
    capsys.readouterr()
    assert main(["check-config", str(config), "--plugin", str(good)]) == ExitCode.OK
    assert main(["rbac", "--config", str(config), "--plugin", str(good)]) == ExitCode.OK
    capsys.readouterr()
    good.write_text("1/0\n")
    assert main(["check-config", str(config), "--plugin", str(good)]) == ExitCode.FAILURE
    assert f"{good}:1: importing it failed: ZeroDivisionError" in capsys.readouterr().out


def test_plugins_lists_files_and_what_is_wrong_with_them(good: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "bad.py").write_text("1/0\n")
    assert main(["plugins", "-o", "json", "--plugins-dir", str(tmp_path)]) == ExitCode.FAILURE
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert (listed["Good"]["file"], listed["Good"]["line"]) == (str(good), 6)
    assert listed["Good"]["distributions"] == []
    assert listed["bad"]["error"].endswith("line 1: importing it failed: ZeroDivisionError: division by zero")
    assert main(["plugins", "--plugins-dir", str(tmp_path)]) == ExitCode.FAILURE


def test_the_daemon_names_a_file_that_cannot_be_used(good: Path, capsys: Capture) -> None:
    good.write_text("\n1/0\n")
    assert main([f"--plugin={good}", "--secure-port=0"]) == ExitCode.FAILURE
    assert f"{good}, line 2: importing it failed" in capsys.readouterr().err
