from pathlib import Path
from typing import Any

import pytest
import yaml

from trio_sched.cli.flags import parse_flags
from trio_sched.cli.prepare import prepare
from trio_sched.kube_client.settings import ConnectionSettings

BASE = Path(__file__).parents[2] / "contrib" / "deploy"


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict[str, Any]]:
    """Every object that the kustomization lists, by kind and name."""
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    found = [one for name in kustomization["resources"] for one in yaml.safe_load_all((BASE / name).read_text())]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_the_kustomization_lists_every_file() -> None:
    kustomization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    generated = [file for one in kustomization["configMapGenerator"] for file in one["files"]]
    present = {path.name for path in BASE.iterdir()} - {"kustomization.yaml"}
    assert present == {*kustomization["resources"], *generated}


def test_bindings_name_the_service_account_of_the_deployment(objects: dict[tuple[str, str], dict[str, Any]]) -> None:
    pod = objects["Deployment", "trio-sched"]["spec"]["template"]["spec"]
    assert ("ServiceAccount", pod["serviceAccountName"]) in objects
    bindings = [one for (kind, _name), one in objects.items() if kind.endswith("Binding")]
    assert len(bindings) == 5
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["kind"], subject["name"]) == ("ServiceAccount", pod["serviceAccountName"])


def test_the_daemon_accepts_its_arguments_and_the_lease_is_the_one_the_role_allows(
    objects: dict[tuple[str, str], dict[str, Any]],
) -> None:
    (container,) = objects["Deployment", "trio-sched"]["spec"]["template"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    arguments = [one.replace(mount["mountPath"], str(BASE)) for one in container["args"]]
    prepared = prepare(parse_flags(arguments), connection=ConnectionSettings(server="https://cluster.test"))
    election = prepared.config.leader_election
    assert election.leader_elect
    names = [rule.get("resourceNames") for rule in objects["Role", "trio-sched-leader-election"]["rules"]]
    assert [election.resource_name] in names
    assert objects["Deployment", "trio-sched"]["spec"]["replicas"] == 2
