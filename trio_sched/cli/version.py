"""The version of Kubernetes that this scheduler implements, and of trio-sched."""

import re
import sys
from typing import Final

import trio_sched
from trio_sched.documents.go_text import quote
from trio_sched.errors import TrioSchedError

KUBERNETES: Final = f"v{trio_sched.KUBERNETES_VERSION}"
"""The version of kube-scheduler whose behaviour is implemented."""

_OVERRIDE: Final = re.compile(r"v(\d+\.\d+\.\d+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


class VersionError(TrioSchedError):
    """A version to report whose number is not this program's."""


def version_text(asked: str) -> str:
    """What ``--version`` prints.

    Args:
        asked: the flag's value: ``true``, ``raw``, or a version of the same number to report instead.

    Raises:
        VersionError: another number than ours.
    """
    if asked == "raw":
        major, minor, _patch = KUBERNETES.removeprefix("v").split(".")
        platform = f"{sys.platform}/{sys.implementation.name}"
        return (
            f'version.Info{{Major:"{major}", Minor:"{minor}", GitVersion:"{KUBERNETES}", '
            f'TrioSchedVersion:"{trio_sched.__version__}", PythonVersion:"{sys.version.split()[0]}", '
            f'Platform:"{platform}"}}'
        )
    reported = KUBERNETES if asked == "true" else asked
    found = _OVERRIDE.fullmatch(reported)
    if found is None or f"v{found[1]}" != KUBERNETES:
        raise VersionError(
            f"version {quote(reported)} must match major/minor/patch of default version {quote(KUBERNETES)}"
        )
    return f"Kubernetes {reported} (trio-sched {trio_sched.__version__})"
