import os
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.plugin_loading.write_access import open_paths
from trio_sched.cli.process.exit_code import ExitCode

PLUGIN = """
from trio_sched.plugin_api import hookimpl

class Quiet:
    name = "Quiet"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def post_bind(self, pod, node_name, state):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a plugin, a helper and a package, which nobody else can write."""
    made = tmp_path / "above" / "plugins"
    (made / "package").mkdir(parents=True)
    (made / "quiet.py").write_text(PLUGIN)
    (made / "_helper.py").write_text("")
    for path in (tmp_path / "above", made, *made.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return made


def found(folder: Path) -> list[str]:
    return [os.path.relpath(one.path, folder.parent.parent) for one in open_paths(str(folder))]


def test_what_only_the_user_and_root_can_write_is_not_mentioned(folder: Path) -> None:
    assert found(folder) == []
    assert found(folder / "quiet.py") == []


@pytest.mark.parametrize("mode", [0o020, 0o002, 0o022])
@pytest.mark.parametrize(
    "path", ["above", "above/plugins", "above/plugins/quiet.py", "above/plugins/_helper.py", "above/plugins/package"]
)
def test_what_others_can_write_is_found_however_far_up(folder: Path, path: str, mode: int) -> None:
    opened = folder.parent.parent / path
    opened.chmod(opened.stat().st_mode | mode)
    assert found(folder) == [path]


def test_a_folder_above_may_be_shared_if_everybody_can_only_remove_what_is_theirs(folder: Path) -> None:
    folder.parent.chmod(0o1777)
    assert found(folder) == []
    folder.chmod(0o1777)  # but anybody could add a plugin to this one
    assert found(folder) == ["above/plugins"]


def test_the_folders_above_the_target_of_a_link_count_as_well(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    folder.parent.chmod(0o777)
    assert [one.path for one in open_paths(str(tmp_path / "link"))] == [str(folder.parent)]


def test_what_belongs_to_another_user_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder / "quiet.py", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert [Path(one.path).name for one in open_paths(str(folder)) if "quiet" in one.path] == ["quiet.py"]
    assert all(one.mend == f"chown {os.geteuid()} {one.path}" for one in open_paths(str(folder)))


def test_what_does_not_exist_is_no_problem_of_ours() -> None:
    assert list(open_paths("/nonexistent/plugins")) == []
    assert list(open_paths("\0")) == []


@pytest.mark.parametrize("option", ["--plugins-dir", "--plugin"])
def test_one_line_says_what_where_and_how_to_mend_it(
    folder: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.chmod(0o777)
    given = folder if option == "--plugins-dir" else folder / "quiet.py"
    config = folder / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    flags = ["--master=http://127.0.0.1:1", "--secure-port=0", "--write-config-to", str(folder / "out"), option]
    assert main([*flags, str(given)]) == ExitCode.OK
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "Others can change" in line]
    assert line[0] == "W"
    assert f'plugins="{given}" path="{folder}" mode="0777" owner={os.geteuid()} mend="chmod go-w {folder}"' in line
