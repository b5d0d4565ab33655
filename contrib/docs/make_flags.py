"""Writes docs/reference/flags.md from the table of flags: ``python -m contrib.docs.make_flags``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from contrib.docs.pages import Page, table
from trio_sched.cli.flags.flag_table import OWN_SECTIONS, SECTIONS, shown_default
from trio_sched.cli.flags.go_flags import Flag
from trio_sched.cli.flags.legacy_flags import LEGACY_FLAGS
from trio_sched.config.feature_gates import DEFAULT_GATES

HEADER: Final = """\
# Flags

The flags of the daemon are those of kube-scheduler 1.36, and those about [plugins](#plugins). They are read as there:
`--flag=value` or `--flag value`, `_` in a name counts as `-`, a switch without a value is on, and the last of several
counts, except that lists add up.
`--help` shows them too; [completion](#completion) knows them.

With `--config`, the flags of the section *Deprecated* are ignored, but for `--pod-max-in-unschedulable-pods-duration`;
those of *Leader election* win over the file where they are given.

This page is made from `trio_sched/cli/flags/flag_table.py` by `make docs`.
"""
LOGS: Final = """\
What is logged from which `-v` on:

| `-v` | what |
| --- | --- |
| 0 | the life of the process: start, lease, end; warnings and errors |
| 1 | the flags |
| 2 | what became of each attempt to schedule a pod; preemption; the configuration and the plugins in use |
| 3 | attempts, binds, conditions |
| 4 | internal decisions, retries |
| 5 | moves between the scheduling queues; renewals of the lease |
| 6 | a line per request; from here on other packages log more than warnings |
| 7 | the headers of requests |
| 8 | the headers of responses, and bodies, cut |
| 9 | requests as commands to repeat them |
| 10 | the scores of nodes, per plugin (a hundred nodes per pod at most) |

`--vmodule=binding_cycle=4,*/kube_client/*=8` shows more in some files: a pattern is compared with the name of the file,
without `.py`, or with its path if it contains a slash. Credentials, contents of Secrets and environments of containers
are masked at every level.
"""
OWN: Final = """\
kube-scheduler does not have these.
"""
LEGACY: Final = """\
## Flags of former versions

They are accepted, and converted; see [how to keep an old configuration](../how_to/keep_an_old_configuration.md).
"""
COMPLETION: Final = """\
## Completion

`trio-sched completion bash|zsh|fish` prints a script for the shell: `eval "$(trio-sched completion bash)"`.
"""


def text() -> str:
    """The whole page."""
    return "\n".join([HEADER, *_sections()])


def _sections() -> Iterator[str]:
    for section, flags in SECTIONS.items():
        yield f"## {section}\n"
        yield _flags(flags)
        if section == "Logs":
            yield LOGS
        if section == "Feature gate":
            yield _gates()
    for section, flags in OWN_SECTIONS.items():
        yield f"## {section}\n"
        yield OWN
        yield _flags(flags)
    yield LEGACY
    yield _flags(LEGACY_FLAGS)
    yield COMPLETION


def _flags(flags: tuple[Flag, ...]) -> str:
    return table(("flag", "type", "default", "meaning"), map(_row, flags))


def _row(flag: Flag) -> tuple[str, ...]:
    name = f"`-{flag.shorthand}`, `--{flag.name}`" if flag.shorthand else f"`--{flag.name}`"
    default = shown_default(flag).removeprefix(" (default ").removesuffix(")")
    return name, flag.type.name or "bool", f"`{default}`" if default else "", flag.help


def _gates() -> str:
    lines = [line.removeprefix("kube:").partition("=true|false ") for line in DEFAULT_GATES.help_lines()]
    rows = []
    for name, _, state in lines:
        stage, _, default = state.strip("()").partition(" - default=")
        rows.append((f"`{name}`", stage.lower(), "on" if default == "true" else "off"))
    listed = table(("gate", "stage", "default"), rows)
    return f"The gates that can be switched; most belong to other components.\n\n{listed}"


PAGE: Final = Page("flags.md", text)

if __name__ == "__main__":
    PAGE.write()
