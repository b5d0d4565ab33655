"""One comparison of a recording with what we do, and what we do otherwise on purpose."""

import re
from typing import Final

from attrs import frozen
from scoreboard import GoldenRun

from trio_sched.cli.flags.legacy_flags import LEGACY_NAMES
from trio_sched.config.legacy import LEGACY_API_VERSIONS
from trio_sched.config.wire_types import CONFIGURATION_KIND


@frozen
class Comparison:
    """One count in the row *row*."""

    row: str
    agreed: bool
    detail: str = ""

    def count(self, golden: GoldenRun, area: str) -> None:
        """Count it."""
        golden.record(area, self.row, self.agreed, self.detail)


def missing(plugin: str, where: str) -> Comparison:
    """What is recorded of *plugin*, which is not installed."""
    return Comparison(plugin, False, f"{where}: no such plugin")


_NOT_REGISTERED: Final = re.compile(r'no kind "([^"]*)" is registered for version "([^"]*)" in scheme "[^"]*"')
_UNKNOWN_FLAG: Final = re.compile(r"unknown flag: --([^=\s]+)")


def refuses_former_version(error: str) -> bool:
    """Whether a recorded *error* says no more than that kube-scheduler has stopped reading what we convert.

    That is a component configuration of a version before v1, or a flag of former versions. An error about a part of a
    document (arguments of a plugin) is none of these.
    """
    if kind := _NOT_REGISTERED.fullmatch(error):
        return kind[1] == CONFIGURATION_KIND and kind[2] in LEGACY_API_VERSIONS
    flag = _UNKNOWN_FLAG.fullmatch(error)
    return flag is not None and flag[1].replace("_", "-") in LEGACY_NAMES
