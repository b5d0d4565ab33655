"""The manifests, the chart and the image in contrib/deploy."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from failing_cases import failing
from metric_names import check_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from trio_sched.cli.commands.rbac import load_configuration, rbac
from trio_sched.cli.flags.flags import parse_flags
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.cli.startup.prepare import Prepared, prepare
from trio_sched.daemon.permissions import cluster_rules, election_rules
from trio_sched.kube_client.settings import ConnectionSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "contrib" / "deploy"
BASE = DEPLOY / "kustomize"
CHART = DEPLOY / "helm" / "trio-sched"
HELM = Path(sys.executable).parent / "helm"
KUBERNETES = "1.36"
POLICY = "NetworkPolicy"
OF_THE_OPERATOR = ("PodMonitor", "PrometheusRule")
"""Custom resources, of which Kubernetes has no schema."""

Objects = dict[tuple[str, str], dict[str, Any]]

VALUES = {
    "default": {},
    "bin-packing": {"preset": "bin-packing", "schedulerName": "packing", "leaseName": "packing"},
    "spread": {
        "preset": "spread",
        "replicaCount": 3,
        "logFormat": "json",
        "extraArgs": ["--kube-api-qps=9"],
    },
    "shared": {"shards": 3, "replicaCount": 3},
    "shared, with a whole configuration": {
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "sharding": {"shards": 2},
        },
    },
    "monitored": {"monitoring": {"podMonitor": True, "rules": True, "labels": {"release": "prometheus"}}},
    "walled in": {
        "onControlPlane": True,
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "networkPolicy": {
            "enabled": True,
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "apiServerPorts": [6443],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
    },
    "everything": {
        "extraVolumes": [{"name": "plugins", "configMap": {"name": "plugins"}}],
        "extraVolumeMounts": [{"name": "plugins", "mountPath": "/plugins", "readOnly": True}],
        "configuration": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"resourceName": "mine", "resourceNamespace": "leases"},
            "profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}],
        },
        "image": {"repository": "registry.example/trio-sched", "tag": "1", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "env": [{"name": "A", "value": "b"}],
        "rbac": {"extraRules": [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]},
        "serviceAccount": {"name": "other", "annotations": {"a": "b"}},
        "priorityClassName": "",
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "t"},
        "podDisruptionBudget": {"enabled": False},
    },
}


def by_kind_and_name(text: str) -> Objects:
    found = [one for one in yaml.safe_load_all(text) if one is not None]
    assert len({(one["kind"], one["metadata"]["name"]) for one in found}) == len(found)
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


@cache
def kustomized(folder: str = ".") -> Objects:
    command = ["kubectl", "kustomize", str(BASE / folder)]
    return by_kind_and_name(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def template(values: dict[str, Any], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [str(HELM), "template", "sched", str(CHART), "--namespace=scheduling", f"--values={file}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(params=VALUES)
def rendered(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Objects]:
    answer = template(VALUES[request.param], tmp_path)
    assert answer.returncode == 0, answer.stderr
    return request.param, by_kind_and_name(answer.stdout)


def deployment(objects: Objects) -> dict[str, Any]:
    (found,) = (one for (kind, _), one in objects.items() if kind == "Deployment")
    return found


def started(objects: Objects, tmp_path: Path) -> Prepared:
    """What the daemon makes of the arguments and the configuration of the deployment."""
    (container,) = deployment(objects)["spec"]["template"]["spec"]["containers"]
    (mount,) = (one for one in container["volumeMounts"] if one["name"] == "configuration")
    volumes = {one["name"]: one for one in deployment(objects)["spec"]["template"]["spec"]["volumes"]}
    volume = volumes[mount["name"]]
    assert {one["name"] for one in container["volumeMounts"]} == volumes.keys()
    for name, text in objects["ConfigMap", volume["configMap"]["name"]]["data"].items():
        (tmp_path / name).write_text(text)
    arguments = [one.replace(mount["mountPath"], str(tmp_path)) for one in container["args"]]
    return prepare(parse_flags(arguments), connection=ConnectionSettings(server="https://cluster.test"))


def check_schemas(objects: Objects) -> None:
    for (kind, _), one in objects.items():
        if kind not in OF_THE_OPERATOR:
            kubernetes_validate.validate(one, KUBERNETES, strict=True)


def check_lease(objects: Objects, prepared: Prepared) -> None:
    """The role is where the lease is, and allows it."""
    election = prepared.config.leader_election
    (role,) = (one for (kind, name), one in objects.items() if kind == "Role" and name.endswith("-leader-election"))
    assert role["metadata"]["namespace"] == election.resource_namespace
    sharding = prepared.config.sharding
    needed = [one.as_manifest() for one in election_rules(election.resource_name, sharding.shards if sharding else 0)]
    assert role["rules"] == needed


def check_service_account(objects: Objects, namespace: str) -> None:
    name = deployment(objects)["spec"]["template"]["spec"]["serviceAccountName"]
    assert ("ServiceAccount", name) in objects
    bindings = [one for (kind, _), one in objects.items() if kind.endswith("Binding")]
    subjects = [subject for one in bindings for subject in one["subjects"] if not subject["name"].endswith("-metrics")]
    assert len(subjects) == 3
    for subject in subjects:
        assert subject == {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def check_hardening(objects: Objects) -> None:
    pod = deployment(objects)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    assert "cpu" not in container["resources"]["limits"]  # a throttled scheduler renews its lease late
    port = {"port": "https", "scheme": "HTTPS"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", **port}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", **port}


# --- kustomize ------------------------------------------------------------------------------------------------------


def test_the_base_is_valid_and_fits_together(tmp_path: Path) -> None:
    objects = kustomized()
    check_schemas(objects)
    check_service_account(objects, "kube-system")
    check_hardening(objects)
    prepared = started(objects, tmp_path)
    check_lease(objects, prepared)
    assert prepared.config.leader_election.leader_elect
    assert deployment(objects)["spec"]["replicas"] == 2
    labels = deployment(objects)["spec"]["template"]["metadata"]["labels"]
    assert objects["PodDisruptionBudget", "trio-sched"]["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_every_file_is_listed() -> None:
    for folder in (BASE, *(path for path in BASE.iterdir() if path.is_dir())):
        kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
        generated = [file for one in kustomization.get("configMapGenerator", ()) for file in one["files"]]
        present = {path.name for path in folder.iterdir() if path.is_file()} - {"kustomization.yaml"}
        patches = [one["path"] for one in kustomization.get("patches", ())]
        assert present == {*kustomization.get("resources", ()), *patches, *generated}


def printed_roles(*arguments: str) -> str:
    result = CliRunner().invoke(rbac, arguments, help_option_names=["-h", "--help"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_roles_are_those_that_the_configuration_needs() -> None:
    first, _, rest = (BASE / "rbac.yaml").read_text().partition("\n")
    assert first.startswith("#")
    assert rest == printed_roles("--config", str(BASE / "scheduler.yaml"))
    assert (CHART / "files" / "rules.yaml").read_text() == printed_roles("--rules")


def allowed_by(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("version", ["1.33", "1.34", "1.35", "1.36", "1.37"])
def test_the_roles_allow_what_is_watched_and_written_whatever_version_is_emulated(version: str) -> None:
    loaded = load_configuration(str(BASE / "scheduler.yaml"), "", PluginSelection(), version)
    needed = allowed_by([rule.as_manifest() for rule in cluster_rules(loaded)])
    role = next(one for one in yaml.safe_load_all((BASE / "rbac.yaml").read_text()) if one["kind"] == "ClusterRole")
    assert needed <= allowed_by(role["rules"])
    assert needed <= allowed_by(yaml.safe_load((CHART / "files" / "rules.yaml").read_text()))


# --- the chart ------------------------------------------------------------------------------------------------------


def test_the_chart_is_valid_and_fits_together(rendered: tuple[str, Objects], tmp_path: Path) -> None:
    name, objects = rendered
    check_schemas(objects)
    check_service_account(objects, "scheduling")
    check_hardening(objects)
    prepared = started(objects, tmp_path)
    check_lease(objects, prepared)
    pod_labels = deployment(objects)["spec"]["template"]["metadata"]["labels"]
    selectors = [
        one["spec"]["selector"]["matchLabels"]
        for (kind, _), one in objects.items()
        if kind in ("Deployment", "PodDisruptionBudget", "PodMonitor")
    ]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for (kind, _), one in objects.items() if kind == POLICY]
    assert len(selectors) == {"everything": 1, "monitored": 3, "walled in": 3}.get(name, 2)
    for selector in selectors:
        assert selector.items() <= pod_labels.items()


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
TAINT = {"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}


def required_labels(objects: Objects) -> list[str]:
    """The labels that the pods require of their node."""
    affinity = deployment(objects)["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [one["key"] for one in term["matchExpressions"] if one["operator"] == "Exists"]


def test_it_runs_on_the_control_plane_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    objects = by_kind_and_name(template(VALUES["walled in"], tmp_path).stdout)
    pod = deployment(objects)["spec"]["template"]["spec"]
    assert pod["tolerations"] == [TAINT, {"key": "dedicated", "operator": "Exists"}]
    assert required_labels(objects) == [CONTROL_PLANE]
    assert "podAntiAffinity" in pod["affinity"]
    usual = deployment(by_kind_and_name(template({}, tmp_path).stdout))["spec"]["template"]["spec"]
    assert "tolerations" not in usual
    assert usual["affinity"].keys() == {"podAntiAffinity"}


def test_the_network_policy_lets_in_and_out_what_is_needed(tmp_path: Path) -> None:
    policy = by_kind_and_name(template(VALUES["walled in"], tmp_path).stdout)[POLICY, "sched"]["spec"]
    (ingress,) = policy["ingress"]
    assert [one["port"] for one in ingress["ports"]] == [10259]
    assert ingress["from"] == VALUES["walled in"]["networkPolicy"]["from"]  # type: ignore[index]
    ports = [[one["port"] for one in rule.get("ports", ())] for rule in policy["egress"]]
    assert ports == [[6443], [53, 53], []]
    everybody = by_kind_and_name(template({"networkPolicy": {"enabled": True}}, tmp_path).stdout)[POLICY, "sched"]
    assert "from" not in everybody["spec"]["ingress"][0]


@pytest.mark.parametrize(
    ("values", "job"),
    [
        ({}, None),
        ({"schedulerName": "default-scheduler"}, "kube-scheduler"),
        ({"monitoring": {"job": "mine"}}, "mine"),
        ({"schedulerName": "default-scheduler", "monitoring": {"job": "mine"}}, "mine"),
    ],
)
def test_the_job_is_that_of_kube_scheduler_where_it_takes_its_place(
    values: dict[str, Any], job: str | None, tmp_path: Path
) -> None:
    values = {**values, "monitoring": {**values.get("monitoring", {}), "podMonitor": True}}
    monitor = by_kind_and_name(template(values, tmp_path).stdout)["PodMonitor", "sched"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    expected = [] if job is None else [{"targetLabel": "job", "replacement": job}]
    assert endpoint.get("relabelings", []) == expected


@pytest.mark.parametrize(("preset", "strategy"), [("bin-packing", "MostAllocated"), ("spread", "LeastAllocated")])
def test_the_presets_score_as_they_say(preset: str, strategy: str, tmp_path: Path) -> None:
    answer = template({"preset": preset}, tmp_path)
    prepared = started(by_kind_and_name(answer.stdout), tmp_path)
    (profile,) = prepared.profiles
    weights = {ref.name: ref.weight for ref in profile.points["score"]}
    assert (
        max(weights, key=lambda name: weights[name])
        == {
            "bin-packing": "NodeResourcesFit",
            "spread": "PodTopologySpread",
        }[preset]
    )
    assert profile.arguments["NodeResourcesFit"].scoring_strategy.type == strategy
    assert profile.name == "trio-sched"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"prset": "spread"}, "prset"),
        ({"preset": "packing"}, "preset"),
        ({"replicaCount": 0}, "replicaCount"),
        ({"extraArgs": ["v=2"]}, "extraArgs"),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name is needed"),
        ({"extraVolumes": [{"name": "configuration", "emptyDir": {}}]}, "extraVolumes"),
        ({"extraVolumeMounts": [{"name": "plugins"}]}, "mountPath"),
        ({"networkPolicy": {"enabled": True, "apiServerPorts": []}}, "apiServerPorts"),
    ],
)
def test_wrong_values_are_named(values: dict[str, Any], problem: str, tmp_path: Path) -> None:
    answer = template(values, tmp_path)
    assert answer.returncode != 0
    assert problem in answer.stderr


def test_the_schema_knows_every_value() -> None:
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def check(part: dict[str, Any], known: dict[str, Any]) -> None:
        assert part.keys() == known["properties"].keys() - {"global"}
        for name, value in part.items():
            if isinstance(value, dict) and "properties" in known["properties"][name]:
                check(value, known["properties"][name])

    check(values, schema)


# --- the image ------------------------------------------------------------------------------------------------------


def test_the_image_pins_every_dependency_with_hashes() -> None:

    wanted = [
        Requirement(one) for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ]
    pinned = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", (DEPLOY / "requirements.txt").read_text(), re.MULTILINE))
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    for requirement in wanted:
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (DEPLOY / "requirements.txt").read_text())
    assert all("--hash=sha256:" in block for block in blocks if "==" in block.split("\n")[0])


def test_the_image_runs_as_nobody_special() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER [1-9][0-9]*$", text, re.MULTILINE)
    assert text.count("FROM ") == 2


def test_both_stages_have_a_base_that_can_be_named_by_its_digest() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert "ARG BASE=python:${PYTHON}-slim\n" in text


# --- monitoring -----------------------------------------------------------------------------------------------------


def with_components(tmp_path: Path, *components: str, patches: Any = ()) -> Objects:
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "kube-system",
        "resources": ["base"],
        "components": [f"base/{one}" for one in components],
        "patches": list(patches),
    }
    shutil.copytree(BASE, tmp_path / "base")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    command = ["kubectl", "kustomize", str(tmp_path)]
    objects = by_kind_and_name(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    check_schemas(objects)
    return objects


def test_the_components_about_nodes_and_the_network_fit_the_base(tmp_path: Path) -> None:
    objects = with_components(tmp_path, "control_plane", "network_policy")
    pod = deployment(objects)["spec"]["template"]
    assert pod["spec"]["tolerations"] == [TAINT]
    assert required_labels(objects) == [CONTROL_PLANE]
    assert "podAntiAffinity" in pod["spec"]["affinity"]
    policy = objects[POLICY, "trio-sched"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [one["port"] for one in policy["ingress"][0]["ports"]] == [10259]


def test_the_documented_patch_sets_the_job_of_kube_scheduler(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how_to" / "monitor.md").read_text()
    (block,) = re.findall(r"```yaml\n(# kustomization.yaml.*?)```", text, re.DOTALL)
    objects = with_components(tmp_path, "monitoring", patches=yaml.safe_load(block)["patches"])
    (endpoint,) = objects["PodMonitor", "trio-sched"]["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "kube-scheduler"}]


def test_the_monitoring_component_fits_the_base(tmp_path: Path) -> None:
    objects = with_components(tmp_path, "monitoring")
    monitor, pod = objects["PodMonitor", "trio-sched"]["spec"], deployment(objects)["spec"]["template"]
    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in pod["spec"]["containers"][0]["ports"]]
    secret = objects["Secret", endpoint["authorization"]["credentials"]["name"]]
    assert secret["metadata"]["namespace"] == "kube-system"
    assert ("ServiceAccount", secret["metadata"]["annotations"]["kubernetes.io/service-account.name"]) in objects
    (group,) = objects["PrometheusRule", "trio-sched"]["spec"]["groups"]
    assert {"groups": [group]} == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())


def _expressions() -> list[str]:
    dashboard = json.loads((ROOT / "contrib" / "dashboards" / "trio_sched.json").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    shown += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    (group,) = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    return [*shown, *(rule["expr"] for rule in group["rules"])]


def test_every_metric_of_the_dashboard_and_the_alerts_exists_with_its_labels() -> None:
    assert failing({expression: expression for expression in _expressions()}, check_expression) == {}
