"""Which API servers are tried; stand-ins say versions."""

import subprocess
import sys
from pathlib import Path

import pytest

from contrib.api_servers.runs import pairs_of, run_tests, servers_in
from contrib.control_plane.servers import optional_kinds_flags


def executable(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for minor in (36, 9, 33, 31):
        executable(tmp_path / f"1.{minor}" / "etcd", "etcd")
        executable(tmp_path / f"1.{minor}" / "kube-apiserver", f"Kubernetes v1.{minor}.2")
    executable(tmp_path / "other" / "etcd", "etcd")
    executable(tmp_path / "strange" / "etcd", "etcd")
    executable(tmp_path / "strange" / "kube-apiserver", "hello")
    return tmp_path


def test_servers_are_in_the_order_of_their_versions(folder: Path) -> None:
    assert [one.version for one in servers_in(folder)] == ["1.9", "1.31", "1.33", "1.36"]
    assert servers_in(folder / "missing") == []


def test_upgrades_are_from_each_server_with_devices_to_the_next(folder: Path) -> None:
    (_, what, _), (environment, next_one, _) = pairs_of(servers_in(folder))
    assert (what, next_one) == ("1.31 to 1.33", "1.33 to 1.36"), "1.9 serves none"
    assert {name: path.name for name, path in environment.items()} == {
        "UPGRADE_FROM_ASSETS": "1.33",
        "KUBEBUILDER_ASSETS": "1.36",
    }


def test_failures_are_told(folder: Path) -> None:
    test = folder / "test_it.py"
    test.write_text("import os\ndef test_it():\n    assert os.environ['KUBEBUILDER_ASSETS'].endswith('1.33')\n")
    assert run_tests({"KUBEBUILDER_ASSETS": folder / "1.33"}, [str(test)])[0]
    passed, line = run_tests({"KUBEBUILDER_ASSETS": folder / "1.36"}, [str(test)])
    assert not passed
    assert "test_it" in line


def test_a_folder_without_servers_is_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "contrib.api_servers", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no sub-folder with etcd and kube-apiserver" in done.stderr


@pytest.mark.parametrize(
    ("minor", "versions"),
    [(31, "v1alpha3"), (32, "v1beta1"), (33, "v1beta1 v1beta2"), (34, ""), (39, ""), (None, "")],
)
def test_devices_are_switched_on_where_they_are_not(minor: int | None, versions: str) -> None:
    flags = optional_kinds_flags(minor, all_kinds=False)
    assert bool(flags) is bool(versions)
    assert all(f"resource.k8s.io/{one}=true" in flags[1] for one in versions.split())


def test_other_kinds_are_switched_on_if_they_are_wanted() -> None:
    assert optional_kinds_flags(35, all_kinds=False) == []
    assert optional_kinds_flags(35, all_kinds=True) == [
        "--feature-gates=DRADeviceTaints=true,GenericWorkload=true",
        "--runtime-config=resource.k8s.io/v1alpha3=true,scheduling.k8s.io/v1alpha1=true",
    ]
