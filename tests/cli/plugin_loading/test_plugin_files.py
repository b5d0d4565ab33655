import os
import sys
from pathlib import Path

import pytest

from trio_sched.cli.plugin_loading.plugin_files import MAX_FILES, FoundPlugins, load_plugin_files, plugin_files_in

HEAD = "from trio_sched.plugin_api import hookimpl\n"
PLUGIN = """
class {name}:
    name = "{name}"
    def __init__(self, args, handle): pass
    @hookimpl
    def permit(self, pod): return {answer}
"""


def plugin(name: str = "Mine", answer: str = "None") -> str:
    return HEAD + PLUGIN.format(name=name, answer=answer)


def load(*files: Path, folder: Path | None = None) -> FoundPlugins:
    return load_plugin_files([str(file) for file in files], [str(folder)] if folder else [])


def only_error(found: FoundPlugins) -> str:
    (error,) = found.errors
    assert found.plugins == []
    return str(error)


def test_a_plugin_is_found_without_an_entry_point(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(plugin())
    found = load(file)
    assert [(one.name, one.source) for one in found.plugins] == [("Mine", f"{file}, line 3")]
    assert found.errors == []


def test_what_a_file_imports_or_derives_from_is_no_plugin_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "_base.py").write_text(plugin("Base"))
    file = tmp_path / "mine.py"
    file.write_text("from _base import Base, hookimpl\nclass Mine(Base):\n    name = 'Mine'\nclass Help(Mine): pass\n")
    assert [one.name for one in load(folder=tmp_path).plugins] == ["Mine"]


def test_everything_is_imported_again_also_helpers_saved_within_a_second(tmp_path: Path) -> None:
    helper, file = tmp_path / "_answers.py", tmp_path / "mine.py"
    file.write_text("from _answers import ANSWER\n" + plugin(answer="ANSWER"))
    for answer in ("1", "2"):
        helper.write_text(f"ANSWER = {answer}\n")
        (mine,) = load(folder=tmp_path).plugins
        assert mine.plugin(None, None).permit(None) == int(answer)
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("# coding: rot13\n", ": LookupError: 'rot13' is not a text encoding"),
        ("raise KeyboardInterrupt\n", ", line 1: importing it failed: KeyboardInterrupt"),
        (
            "class Meta(type):\n    @property\n    def __name__(cls): raise SystemExit(3)\n"
            "class C(metaclass=Meta): pass\n",
            ", line 4: C cannot be looked at: SystemExit: 3",
        ),
        (
            "class Any:\n    def __getattr__(self, name): raise SystemExit(name)\n"
            "class C:\n    name, permit = 'C', Any()\n",
            ", line 3: C cannot be looked at: SystemExit: ",
        ),
        (plugin("Mine") + "    name = 'a\\x1bb'\n", ", line 3: plugin 'a\\x1bb': its name cannot be written to a log"),
        ("x = (\n", ", line 1: SyntaxError: '(' was never closed"),
        ("\n\nimport no_module_of_that_name\n", ", line 3: importing it failed: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", ", line 2: importing it failed: SystemExit: 3"),
        ("def f():\n    raise BaseException('odd')\nf()\n", ", line 2: importing it failed: BaseException: odd"),
        ("x = 1\n", ": it defines no plugin: no class with a name and methods marked with @hookimpl"),
        (plugin().replace('    name = "Mine"\n', ""), ", line 3: class Mine has hooks, but no name; set name = 'Mine'"),
        (plugin().replace("@hookimpl", "# no mark"), ", line 3: plugin 'Mine': no method is marked with @hookimpl"),
        (plugin().replace("permit(self, pod)", "permit(self, pot)"), ", line 3: plugin 'Mine': hook 'permit' has an"),
        (plugin().replace("(self, args, handle)", "(self)"), ", line 3: plugin 'Mine': its constructor does not take"),
        (plugin() + "    requires_api = '7.0'\n", ", line 3: plugin 'Mine': needs plugin API 7.0"),
        ("\x00", ""),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, source: str, problem: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    assert only_error(load(file)).startswith(f"{file}{problem}")


def test_what_is_not_utf_8_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_bytes(b"x = 1\ny = '\xff'\n")
    assert "is not UTF-8" in only_error(load(file)) or "SyntaxError" in only_error(load(file))
    assert f"{file}, line 2" in only_error(load(file))


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1/0")
    (tmp_path / "b.py").write_text(plugin())
    (tmp_path / "nothing.py").write_text("x = 1")
    (tmp_path / ".hidden.py").write_text("1/0")
    (tmp_path / "folder.py").mkdir()
    found = load(folder=tmp_path)
    assert [one.name for one in found.plugins] == ["Mine"]
    assert [str(error).partition(": ")[2] for error in found.errors] == [
        "importing it failed: ZeroDivisionError: division by zero",
        "is no regular file",
    ]


def test_two_classes_of_one_name_are_both_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(plugin())
    (tmp_path / "b.py").write_text(plugin())
    (error,) = load(folder=tmp_path).errors
    assert str(error) == (
        f"{tmp_path / 'b.py'}, line 3: plugin 'Mine' is defined in {tmp_path / 'a.py'}, line 3 too; "
        "give one of them another name"
    )


def test_files_that_cannot_be_read_or_would_hold_up_everything(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.py"
    os.mkfifo(fifo)
    assert only_error(load(fifo)) == f"{fifo}: is no regular file"
    assert "cannot be read: no such file" in only_error(load(tmp_path / "gone.py"))
    assert "cannot be listed: no such file" in only_error(load(folder=tmp_path / "gone"))
    assert "cannot be read" in only_error(load_plugin_files(["nul\0.py"], []))
    huge = tmp_path / "huge.py"
    huge.write_bytes(b"#" * (5 << 20))
    assert "is larger than" in only_error(load(huge))


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"{number}.py").touch()
    assert f"has {MAX_FILES + 1} Python files" in only_error(load(folder=tmp_path))


def test_what_a_plugin_prints_is_no_output_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("print('hello')\n" + plugin())
    load(file)
    assert capsys.readouterr() == ("", "hello\n")
    monkeypatch.setattr(sys, "stderr", None)
    load(file)
    assert capsys.readouterr().out == ""


def test_a_file_that_fails_leaves_the_module_that_is_in_use(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(plugin())
    (mine,) = load(file).plugins
    file.write_text("1/0")
    load(file)
    assert sys.modules[mine.plugin.__module__].Mine is mine.plugin


def test_helpers_are_watched_but_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "_help.py").touch()
    (tmp_path / "mine.py").touch()
    (tmp_path / "mine.txt").touch()
    assert plugin_files_in(str(tmp_path)) == [str(tmp_path / "mine.py")]
    assert plugin_files_in(str(tmp_path), with_helpers=True) == [str(tmp_path / "_help.py"), str(tmp_path / "mine.py")]
