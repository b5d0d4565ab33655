import sys
from collections.abc import Callable, Iterator
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

InstallPlugin = Callable[..., Path]


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


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallPlugin]:
    """Puts a distribution on the path as pip would: a module, and metadata with an entry point."""
    modules: list[str] = []

    def install(name: str, source: str, *, distribution: str = "somebodys-plugin") -> Path:
        target = tmp_path / f"site-{distribution}"
        module = f"plugin_{name.lower()}_{distribution.replace('-', '_')}"
        metadata = target / f"{distribution.replace('-', '_')}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (target / f"{module}.py").write_text(source)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[trio_sched]\n{name} = {module}:{name}\n")
        monkeypatch.syspath_prepend(target)
        modules.append(module)
        return target

    yield install
    for module in modules:
        sys.modules.pop(module, None)
