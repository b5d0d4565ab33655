"""Fixtures for tests that run commands: a cluster in a file, and logging as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from restored_logging import restored_logging

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {trio-sched.dev/pool: small, kubernetes.io/hostname: %s}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %s}}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "%s"}}}]}
---
"""


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Commands set up the process's logging; give pytest its own back."""
    with restored_logging():
        yield


@pytest.fixture
def small_cluster(tmp_path: Path) -> Path:
    """Two nodes of four cores; three pods fit, one does not."""
    path = tmp_path / "cluster.yaml"
    pods = POD % ("web-1", "web", 1) + POD % ("web-2", "web", 1) + POD % ("db", "db", 2) + POD % ("huge", "huge", 7)
    path.write_text(NODE % ("a", "a") + NODE % ("b", "b") + pods)
    return path
