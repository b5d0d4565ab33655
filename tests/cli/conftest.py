import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_fixtures import _logging_as_before as _logging_as_before
from command_fixtures import small_cluster as small_cluster

InstallPlugin = Callable[..., Path]


@pytest.fixture(autouse=True)
def _path_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of plugins stay on the path while a process lives, and their helpers would be those of other tests."""
    monkeypatch.setattr(sys, "path", sys.path.copy())


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
