"""What `lint-imports` checks (part of ``make check``) speaks of every room that there is."""

import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MAX_FILES: Final = 25
"""In a room; more ask for rooms inside it."""


def contracts() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


LAYERS: Final = {
    section["containers"].strip(): {name for line in section["layers"].split("\n") for name in line.split(" | ")}
    for section in contracts().values()
    if section.get("type") == "layers"
}
ROOMS: Final = sorted(
    path.parent.relative_to(ROOT)
    for name in ("trio_sched", "plugins_builtin")
    for path in (ROOT / name).rglob("__init__.py")
)


@pytest.mark.parametrize("container", LAYERS)
def test_every_room_in_a_room_has_its_layer(container: str) -> None:
    folder = Path(container.replace(".", "/"))
    assert {room.name for room in ROOMS if room.parent == folder} - LAYERS[container] == set()


def test_circles_are_looked_for_everywhere() -> None:
    assert contracts()["importlinter:contract:circles"]["ancestors"].split() == ["trio_sched", "plugins_builtin"]


def test_no_room_is_a_heap() -> None:
    files = {room.as_posix(): len(list((ROOT / room).glob("*.py"))) - 1 for room in ROOMS}
    assert len(files) > 50
    assert {room: count for room, count in files.items() if count > MAX_FILES} == {}


def test_every_room_says_what_is_in_it() -> None:
    texts = {room.as_posix(): (ROOT / room / "__init__.py").read_text(encoding="utf-8") for room in ROOMS}
    assert [room for room, text in texts.items() if not text.startswith('"""')] == []


def test_the_example_plugins_are_all_tested_and_checked() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    folders = sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("contrib/plugins/*/pyproject.toml"))
    assert settings["pytest"]["ini_options"]["pythonpath"] == folders
    assert settings["mypy"]["mypy_path"] == [f"$MYPY_CONFIG_FILE_DIR/{folder}" for folder in folders]
    packages = sorted(path.parent.name for path in ROOT.glob("contrib/plugins/*/trio_sched_*/__init__.py"))
    assert settings["mypy"]["packages"] == ["trio_sched", "plugins_builtin", *packages]
