"""Which API servers there are, and pytest in a process of its own for each of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from attrs import frozen

from contrib.control_plane.servers import OLDEST_WITH_DEVICES, minor_version

_REAL: Final = "tests/end_to_end/real/test_real_"
TESTS: Final = tuple(
    f"{_REAL}{name}.py"
    for name in ("api_server", "custom_resources", "decisions", "deployment", "devices", "gangs", "mixed_scenarios")
)
"""Those that hold on every version; others compare with what one version does."""
_UPGRADE: Final = (f"{_REAL}upgrade.py",)
Run = tuple[Mapping[str, Path], str, Sequence[str]]
"""Environment variables, what is run, the tests."""


@frozen
class ApiServerFolder:
    """Executables of one version."""

    folder: Path
    minor: int

    @property
    def version(self) -> str:
        """``1.33``."""
        return f"1.{self.minor}"


def servers_in(folder: Path) -> list[ApiServerFolder]:
    """The sub-folders of *folder* with etcd and an API server that says its version, oldest first."""
    found = []
    for one in sorted(folder.iterdir()) if folder.is_dir() else ():
        if all(os.access(one / name, os.X_OK) for name in ("etcd", "kube-apiserver")):
            minor = minor_version(one / "kube-apiserver")
            if minor is not None:
                found.append(ApiServerFolder(one.resolve(), minor))
    return sorted(found, key=lambda one: one.minor)


def pairs_of(servers: Sequence[ApiServerFolder]) -> Iterator[Run]:
    """An upgrade from each server that serves devices to the next one."""
    for before, after in pairwise(one for one in servers if one.minor >= OLDEST_WITH_DEVICES):
        environment = {"UPGRADE_FROM_ASSETS": before.folder, "KUBEBUILDER_ASSETS": after.folder}
        yield environment, f"{before.version} to {after.version}", _UPGRADE


def run_tests(environment: Mapping[str, Path], tests: Sequence[str]) -> tuple[bool, str]:
    """Whether *tests* have passed, and the last line that pytest has written."""
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    variables = {**os.environ, **{name: str(path) for name, path in environment.items()}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing was written"]
    failures = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, "; ".join([lines[-1], *failures])
