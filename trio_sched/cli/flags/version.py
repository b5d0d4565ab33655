"""The version of Kubernetes that this scheduler implements, and of trio-sched."""

import platform
import sys
from typing import Final

import trio_sched
from trio_sched.go.text import quote

KUBERNETES: Final = f"v{trio_sched.KUBERNETES_VERSION}"
"""The version of kube-scheduler whose behaviour is implemented."""


def version_text(asked: str, *, with_ours: bool) -> str:
    """What ``--version`` prints.

    Args:
        asked: ``true`` for the line that scripts compare, ``raw`` for everything there is to know.
        with_ours: whether a line with the version of trio-sched follows, for a person.
    """
    if asked != "raw":
        return f"Kubernetes {KUBERNETES}" + (f"\ntrio-sched {trio_sched.__version__}" if with_ours else "")
    major, minor, _patch = KUBERNETES.removeprefix("v").split(".")
    fields = {
        "Major": major,
        "Minor": minor,
        "EmulationMajor": "",
        "EmulationMinor": "",
        "MinCompatibilityMajor": "",
        "MinCompatibilityMinor": "",
        "GitVersion": KUBERNETES,
        "GitCommit": f"trio-sched {trio_sched.__version__}",
        "GitTreeState": "",
        "BuildDate": "",
        "GoVersion": f"Python {platform.python_version()}",
        "Compiler": sys.implementation.name,
        "Platform": f"{sys.platform}/{platform.machine()}",
    }
    listed = ", ".join(f"{name}:{quote(text)}" for name, text in fields.items())
    return f"version.Info{{{listed}}}"
