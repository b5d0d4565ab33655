"""The values of flags as text, the way Go prints them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from trio_sched.cli.flag_table import SECTIONS
from trio_sched.cli.flags import Flags
from trio_sched.cli.go_flags import (
    DURATION,
    FLOAT32,
    INT32S,
    IP,
    MAPPING,
    NAMED_CERT_KEY,
    PATTERNS,
    SETTINGS,
    STRINGS,
    FlagType,
)
from trio_sched.config.durations import format_duration
from trio_sched.documents.go_text import general_float


def shown_values(flags: Flags) -> Mapping[str, str]:
    """Every flag with its value."""
    shown = {flag.name: _shown(flag.type, flags[flag.name]) for section in SECTIONS.values() for flag in section}
    return {**shown, "version": shown["version"] or "false"}


def _shown(type_: FlagType, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if type_ is DURATION:
        return format_duration(value)
    if type_ is FLOAT32:
        return general_float(value, bits=32)
    if type_ is IP:
        return value or "<nil>"
    if type_ is STRINGS:
        return f"[{_comma_separated(value)}]"
    if type_ is INT32S:
        return f"[{','.join(map(str, value))}]"
    if type_ is MAPPING:
        return f"[{_comma_separated(f'{key}={text}' for key, text in sorted(value.items()))}]"
    if type_ is NAMED_CERT_KEY:
        return f"[{';'.join(_named_pair(*pair) for pair in value)}]"
    if type_ is PATTERNS:
        return ",".join(f"{pattern}={level}" for pattern, level in value)
    if type_ is SETTINGS:
        return ",".join(sorted(_with_component(one) for text in value for one in text.split(",") if one))
    return str(value)


def _comma_separated(values: Iterable[str]) -> str:
    text = io.StringIO()
    listed = list(values)
    if listed:
        csv.writer(text, lineterminator="").writerow(listed)
    return text.getvalue()


def _named_pair(certificate: str, key: str, names: tuple[str, ...]) -> str:
    return f"{certificate},{key}:{','.join(names)}" if names else f"{certificate},{key}"


def _with_component(setting: str) -> str:
    """A gate is shown behind its component, which is empty if none was named."""
    return setting if ":" in setting.partition("=")[0] else f":{setting}"
