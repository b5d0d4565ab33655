"""``--record`` and what belongs to it: where decisions are recorded, and how much of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trio_sched.cli.flags.flags import Flags
from trio_sched.config.errors import ConfigError
from trio_sched.recording.recording_settings import RecordingSettings

_LEAST_MIB: Final = 2
"""Less has no room for what exists at the beginning of a segment beside what happens then."""
_MOST_MIB: Final = 1 << 30


def read_recording(flags: Flags) -> RecordingSettings | None:
    """What *flags* say is to be recorded; None: nothing.

    Raises:
        ConfigError: the size is none.
    """
    if not flags["record"]:
        return None
    mib: int = flags["record-max-mib"]
    if not _LEAST_MIB <= mib <= _MOST_MIB:
        raise ConfigError.of(f"--record-max-mib={mib}: must be from {_LEAST_MIB} to {_MOST_MIB}")
    return RecordingSettings(
        folder=Path(flags["record"]),
        max_bytes=mib << 20,
        annotations=tuple(flags["record-annotations"]),
        hash_names=flags["record-hash-names"],
    )
