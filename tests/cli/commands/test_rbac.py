"""``trio-sched rbac``."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from click.testing import CliRunner
from plugin_base import PluginBase

from trio_sched.cli.commands.rbac import rbac
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api import Action, EventRegistration, Status, hookimpl, on

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: {elect}, resourceName: mine, resourceNamespace: leases}}
{top}
profiles:
  - schedulerName: s
    plugins:
      multiPoint: {{disabled: [{{name: "*"}}], enabled: [{{name: PrioritySort}}, {{name: DefaultBinder}}{more}]}}
"""


class Quota(PluginBase):
    """Reads, waits for and writes custom resources."""

    watches: ClassVar[tuple[str, ...]] = ("Namespace",)
    writes: ClassVar[dict[str, tuple[str, ...]]] = {"quotas.v1.example.com": ("create", "patch"), "Pod": ("delete",)}

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on("quotas.v1.example.com", Action.UPDATE)]

    @hookimpl
    def pre_enqueue(self, pod: Any) -> Status | None:
        return None


@pytest.fixture
def with_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    discover = PluginRegistry.discover

    def discovered() -> PluginRegistry:
        registry = discover()
        registry.add(Quota)
        return registry

    monkeypatch.setattr(PluginRegistry, "discover", discovered)


def printed(tmp_path: Path, *arguments: str, elect: bool = True, more: str = "", top: str = "") -> Any:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.format(elect=str(elect).lower(), more=more, top=top))
    result = CliRunner().invoke(rbac, ["--config", str(path), *arguments], help_option_names=["-h", "--help"])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.output))


def allowed(rules: list[dict[str, Any]]) -> dict[tuple[str, str], set[str]]:
    return {(rule["apiGroups"][0], resource): set(rule["verbs"]) for rule in rules for resource in rule["resources"]}


READ = {"get", "list", "watch"}


def test_a_bare_profile_needs_pods_nodes_and_events_only(tmp_path: Path) -> None:
    (rules,) = printed(tmp_path, "--rules")
    assert allowed(rules) == {
        ("", "nodes"): READ,
        ("", "pods"): READ,
        ("", "pods/binding"): {"create"},
        ("", "pods/status"): {"patch"},
        ("", "events"): {"create", "patch"},
        ("events.k8s.io", "events"): {"create", "patch"},
        ("authentication.k8s.io", "tokenreviews"): {"create"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    }


@pytest.mark.usefixtures("with_quota")
def test_what_plugins_read_wait_for_and_write_is_added(tmp_path: Path) -> None:
    (rules,) = printed(tmp_path, "--rules", more=", {name: Quota}")
    found = allowed(rules)
    assert found["example.com", "quotas"] == {*READ, "create", "patch"}
    assert found["", "namespaces"] == READ
    assert found["", "pods"] == {*READ, "delete"}


def test_pod_groups_are_read_and_their_status_written_where_the_gates_are_on(tmp_path: Path) -> None:
    (rules,) = printed(tmp_path, "--rules", "--feature-gates=GenericWorkload=true,GangScheduling=true")
    found = allowed(rules)
    assert found["scheduling.k8s.io", "podgroups"] == READ
    assert found["scheduling.k8s.io", "workloads"] == READ  # which have them on 1.35
    assert found["scheduling.k8s.io", "podgroups/status"] == {"patch"}
    assert found["", "pods"] == {*READ, "delete"}  # of gangs that stay incomplete


def test_the_lease_is_allowed_by_its_name_where_it_is(tmp_path: Path) -> None:
    documents = printed(tmp_path, "--name=n", "--namespace=ns", "--service-account=sa")
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in documents}
    role = by_name["Role", "n-leader-election"]
    assert role["metadata"]["namespace"] == "leases"
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, ["mine"]]
    for (kind, _), one in by_name.items():
        if kind.endswith("Binding"):
            assert one["subjects"] == [{"kind": "ServiceAccount", "name": "sa", "namespace": "ns"}]
    assert len(documents) == 5
    assert len(printed(tmp_path, elect=False)) == 3


def test_where_the_work_is_shared_there_is_a_lease_for_each_shard(tmp_path: Path) -> None:
    documents = printed(tmp_path, "--name=n", top="sharding: {shards: 2}")
    (role,) = (one for one in documents if one["kind"] == "Role")
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]] == [
        (None, ["create", "list"]),
        (["mine", "mine-shard-0-of-2", "mine-shard-1-of-2"], ["get", "update", "watch"]),
    ]


@pytest.mark.parametrize("writes", [("Pod",), {"Pod": "delete"}, {3: ("delete",)}, {"Pod": (1,)}])
def test_writes_of_another_form_are_refused(writes: Any) -> None:
    plugin = type("Quota", (Quota,), {"writes": writes})
    with pytest.raises(BadPlugin, match="its writes must be verbs by kind"):
        PluginRegistry.discover().add(plugin)


@pytest.mark.usefixtures("with_quota")
def test_a_shadow_only_reads_and_holds_no_lease(tmp_path: Path) -> None:
    documents = printed(tmp_path, "--shadow", more=", {name: Quota}")
    assert [document["kind"] for document in documents] == ["ClusterRole", "ClusterRoleBinding", "RoleBinding"]
    rules = documents[0]["rules"]
    writing = {tuple(rule["resources"]) for rule in rules if set(rule["verbs"]) != {"get", "list", "watch"}}
    assert writing == {("tokenreviews",), ("subjectaccessreviews",)}  # nothing is stored of them
    assert any("quotas" in rule["resources"] for rule in rules)


@pytest.mark.parametrize("version", ["", "1.36", "1.37"])
def test_roles_fit_the_api_servers_of_all_versions_unless_one_is_given(version: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(rbac, ["--rules", *([f"--emulated-version={version}"] if version else [])])
    assert result.exit_code == 0, result.output
    read = {resource for rule in yaml.safe_load(result.output) for resource in rule["resources"]}
    assert ("devicetaintrules" in read) is (version != "1.36"), "1.37 watches them by default"


def test_a_gate_of_one_version_needs_the_roles_of_that_one() -> None:
    result = CliRunner().invoke(rbac, ["--rules", "--feature-gates=GenericWorkload=true,GangScheduling=true"])
    assert result.exit_code == 0, result.output
    read = {resource for rule in yaml.safe_load(result.output) for resource in rule["resources"]}
    assert {"podgroups", "podgroups/status"} <= read
    unknown = CliRunner().invoke(rbac, ["--rules", "--feature-gates=NoSuchGate=true"])
    assert "unrecognized feature gate: NoSuchGate" in str(unknown.exception)
