"""``--record`` and what belongs to it."""

from pathlib import Path

import pytest

from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.flags.recording_options import read_recording
from trio_sched.config.errors import ConfigError
from trio_sched.recording.recording_settings import RecordingSettings


def test_nothing_is_recorded_by_default() -> None:
    assert read_recording(parse_flags(["--record-max-mib=7"])) is None


def test_a_recording_has_a_folder_a_size_and_annotations() -> None:
    flags = parse_flags(["--record=here", "--record-max-mib=7", "--record-annotations=a,b/*"])
    assert read_recording(flags) == RecordingSettings(folder=Path("here"), max_bytes=7 << 20, annotations=("a", "b/*"))


def test_names_are_hashed_only_if_that_is_asked_for() -> None:
    found = [read_recording(parse_flags(["--record=here", *more])) for more in ([], ["--record-hash-names"])]
    assert [one.hash_names for one in found if one is not None] == [False, True]


@pytest.mark.parametrize("size", [1, 0, -5, 1 << 40])
def test_a_size_that_is_none_is_refused(size: int) -> None:
    with pytest.raises(ConfigError, match=f"--record-max-mib={size}: must be from 2 to"):
        read_recording(parse_flags(["--record=here", f"--record-max-mib={size}"]))
