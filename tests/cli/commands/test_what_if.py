"""`trio-sched what-if` as it is typed: what it says, in which form, and with which exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulation import simulated_run

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
POOL = "cloud.google.com/gke-nodepool"
HOST = "kubernetes.io/hostname"
Capture = pytest.CaptureFixture[str]
Write = Callable[..., str]
Json = dict[str, Any]


def node(name: str, cpu: str = "4", pool: str = "general", price: str = "", **spec: Any) -> Json:
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    labels = {HOST: name, POOL: pool, "topology.kubernetes.io/zone": f"zone-{pool}"}
    annotations = {"trio-sched.dev/price": price} if price else {}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod_spec(cpu: str, **more: Any) -> Json:
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}], **more}


def pod(name: str, cpu: str = "1", **spec: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(cpu, **spec)}


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec(cpu, **spec)}
    wanted = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def budget(name: str, **limit: Any) -> Json:
    spec = {"selector": {"matchLabels": {"app": name}}, **limit}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, *objects: Json) -> str:
        (tmp_path / name).write_text(yaml.safe_dump_all(objects))
        return str(tmp_path / name)

    return written


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


def asked(capsys: Capture, *arguments: str) -> tuple[int, Json]:
    code = main(["what-if", *arguments, "-o", "json"])
    printed = capsys.readouterr()
    data: Json = json.loads(printed.out)
    schema = json.loads((REFERENCE / "what-if.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(data)
    return code, data


def refused(capsys: Capture, *arguments: str) -> tuple[int, str]:
    code = main(["what-if", *arguments])
    printed = capsys.readouterr()
    assert printed.out == ""
    return code, printed.err


def groups(data: Json, key: str, of: str) -> dict[str, tuple[int, int]]:
    return {one["name"]: (one[of]["before"], one[of]["after"]) for one in data[key]}


def test_a_drained_node_is_empty_and_its_pods_run_elsewhere(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2", pool="other"), deployment("web", 4))
    code, data = asked(capsys, "drain", "n1", "--cluster", cluster)
    assert (code, data["works"]) == (ExitCode.OK, True)
    moved = [one for one in data["pods"] if one["from"] == "n1"]
    assert moved
    assert {(one["workload"], one["to"]) for one in moved} == {("Deployment default/web", "n2")}
    assert all(one["replacement"] != one["pod"] for one in moved)
    assert groups(data, "pools", "pods")["general"] == (len(moved), 0)
    assert groups(data, "zones", "pods")["zone-other"] == (4 - len(moved), 4)
    assert data["commands"] == ["kubectl drain n1 --ignore-daemonsets --delete-emptydir-data"]


def test_pods_without_room_elsewhere_are_pending_with_their_reason(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), deployment("web", 8))
    code, data = asked(capsys, "drain", "n1", "--cluster", cluster)
    assert (code, data["works"]) == (ExitCode.FAILURE, False)
    (pending,) = data["pending"]
    assert (pending["workload"], len(pending["pods"])) == ("Deployment default/web", 4)
    assert "1 Insufficient cpu" in pending["why"]
    assert "1 node(s) were unschedulable" in pending["why"]


def test_budgets_make_waves_and_a_budget_that_allows_nothing_blocks(write: Write, capsys: Capture) -> None:
    nodes = [node("n1"), node("n2")]
    slow = write("slow.yaml", *nodes, deployment("web", 4), budget("web", maxUnavailable=1))
    code, data = asked(capsys, "drain", "n1", "--cluster", slow)
    assert code == ExitCode.OK
    assert [len(one["pods"]) for one in data["waves"]] == [1, 1]
    assert [one["emptied"] for one in data["waves"]] == [[], ["n1"]]
    stuck = write("stuck.yaml", *nodes, deployment("web", 4), budget("web", minAvailable=4))
    code, data = asked(capsys, "drain", "n1", "--cluster", stuck)
    assert code == ExitCode.FAILURE
    assert {one["node"] for one in data["blocked"]} == {"n1"}
    assert "The disruption budget web needs 4 healthy pods and has 4 currently" in data["blocked"][0]["why"]
    assert data["pods"] == []


def test_a_cluster_that_never_comes_to_rest_has_no_effects_that_can_be_told(
    write: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_run, "LONGEST_SECONDS", 120.0)
    shunned = node("n1", taints=[{"key": "gone", "effect": "NoExecute"}])
    cluster = write("cluster.yaml", shunned, node("n2"), deployment("web", 1, nodeName="n1"))
    code, data = asked(capsys, "cordon", "n2", "--cluster", cluster)
    assert (code, data["works"]) == (ExitCode.FAILURE, False)
    said = " ".join(data["summary"])
    assert "the cluster does not come to rest by itself, before it is changed" in said


def test_pods_that_nothing_makes_again_are_gone_after_a_drain(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), pod("bare", nodeSelector={HOST: "n1"}))
    code, data = asked(capsys, "drain", "n1", "--cluster", cluster)
    assert code == ExitCode.FAILURE
    (gone,) = data["pods"]
    assert (gone["pod"], gone["from"], gone["replacement"], gone["to"]) == ("default/bare", "n1", None, None)
    assert data["commands"] == ["kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force"]
    assert any("--force" in one for one in data["summary"])


def test_a_removed_node_takes_its_pods_along_whatever_budgets_say(write: Write, capsys: Capture) -> None:
    stuck = budget("web", minAvailable=2)
    cluster = write("cluster.yaml", node("n1"), node("n2", pool="other"), deployment("web", 2), stuck)
    code, data = asked(capsys, "remove", "-l", f"{POOL}=general", "--cluster", cluster)
    assert code == ExitCode.OK
    assert groups(data, "pools", "nodes") == {"general": (1, 0), "other": (1, 1)}
    assert groups(data, "pools", "pods")["other"] == (1, 2)
    assert data["commands"] == ["kubectl delete node n1"]


def test_a_cordon_moves_nobody(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), deployment("web", 2))
    code, data = asked(capsys, "cordon", "n1", "--cluster", cluster)
    assert (code, data["pods"], data["summary"]) == (ExitCode.OK, [], ["no pod would be elsewhere"])


def test_added_nodes_take_pending_pods(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), deployment("web", 7))
    code, data = asked(capsys, "add", "--like", "general", "--count", "2", "--cluster", cluster)
    assert code == ExitCode.OK
    assert groups(data, "pools", "nodes") == {"general": (1, 3)}
    placed = {one["to"] for one in data["pods"]}
    assert placed == {"n1-1", "n1-2"}
    assert len(data["pods"]) == 3


def test_nodes_are_added_until_all_pods_are_placed_the_cheapest_that_help_first(write: Write, capsys: Capture) -> None:
    nodes = [
        node("small", cpu="2", price="1"),
        node("large", cpu="8", pool="large", price="3"),
        node("gold", cpu="8", pool="gold", price="9"),
    ]
    full = [
        pod(f"on-{one}", cpu, nodeSelector={HOST: one}) for one, cpu in (("small", "2"), ("large", "8"), ("gold", "8"))
    ]
    cluster = write("cluster.yaml", *nodes, *full, deployment("web", 3, cpu="2"), deployment("huge", 1, cpu="7"))
    code, data = asked(capsys, "add", "--until-placed", "--cluster", cluster)
    added = {one["pool"]: (one["count"], one["price"]) for one in data["added"]}
    assert (code, added) == (ExitCode.OK, {"general": (3, 3.0), "large": (1, 3.0)})
    code, data = asked(capsys, "add", "--until-placed", "--at-most", "2", "--cluster", cluster)
    assert code == ExitCode.FAILURE
    assert "2 pods would still be pending: more than 2 nodes would be needed" in data["summary"]
    impossible = write("more.yaml", *nodes, pod("never", "100"))
    code, data = asked(capsys, "add", "--until-placed", "--cluster", impossible)
    assert (code, data["added"]) == (ExitCode.FAILURE, [])
    assert "1 pod would still be pending: no node of any pool helps" in data["summary"]
    assert groups(data, "pools", "nodes") == {"general": (1, 1), "gold": (1, 1), "large": (1, 1)}


def test_a_gang_gets_the_several_nodes_that_only_help_together(write: Write, capsys: Capture) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    members = [pod(f"member-{n}", "3", schedulingGroup={"podGroupName": "gang"}) for n in range(3)]
    cluster = write("cluster.yaml", node("n1"), group, *members)
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    code, data = asked(capsys, "add", "--until-placed", gates, "--cluster", cluster)
    assert (code, [one["count"] for one in data["added"]]) == (ExitCode.OK, [2])


def test_copies_fit_as_often_as_the_engine_places_them(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2", pool="other"), deployment("web", 2))
    wanted = write("pod.yaml", deployment("job", 1, cpu="1500m"))
    code, data = asked(capsys, "fit", "-f", wanted, "--cluster", cluster)
    assert code == ExitCode.OK
    assert {one["node"]: one["copies"] for one in data["nodesOfCopies"]} == {"n1": 2, "n2": 2}
    assert {one["name"]: one["copies"] for one in data["pools"]} == {"general": 2, "other": 2}
    (limit,) = data["limits"]
    assert limit["nodes"] == 2
    assert "1.5" in limit["requirement"]
    code, data = asked(capsys, "fit", "-f", wanted, "--count", "4", "--cluster", cluster)
    assert (code, data["limits"]) == (ExitCode.OK, [])
    code, data = asked(capsys, "fit", "-f", wanted, "--count", "5", "--cluster", cluster)
    assert code == ExitCode.FAILURE
    assert data["summary"][0] == "4 copies of 5 would get a node"


def test_copies_may_preempt(write: Write, capsys: Capture) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    cluster = write("cluster.yaml", node("n1"), deployment("web", 4), urgent)
    wanted = write("pod.yaml", pod("now", "2", priorityClassName="urgent"))
    code, data = asked(capsys, "fit", "-f", wanted, "--count", "1", "--cluster", cluster)
    assert (code, data["summary"][0]) == (ExitCode.FAILURE, "0 copies of 1 would get a node")
    code, data = asked(capsys, "fit", "-f", wanted, "--count", "1", "--preemption", "--cluster", cluster)
    assert code == ExitCode.FAILURE  # two pods of web lose their place
    preempted = [one for one in data["pods"] if one["preemptedBy"]]
    assert [(one["from"], one["to"]) for one in preempted] == [("n1", None)] * 2
    assert [one["to"] for one in data["pods"] if one["from"] is None and one["to"]] == ["n1"]


def test_what_is_applied_may_be_new_or_changed(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), deployment("web", 2))
    more = write("more.yaml", deployment("web", 3), deployment("other", 2, cpu="900m"))
    code, data = asked(capsys, "apply", "-f", more, "--cluster", cluster)
    assert code == ExitCode.OK
    new = sorted((one["workload"], one["from"] or "new", one["to"] or "pending") for one in data["pods"])
    others = "Deployment default/other"
    assert new in (
        [(others, "new", "n1"), ("Deployment default/web", "new", "n1"), (others, "new", "pending")],
        [(others, "new", "n1"), (others, "new", "pending"), ("Deployment default/web", "new", "n1")],
    )
    (pending,) = data["pending"]
    assert (pending["workload"], len(pending["pods"])) == (others, 1)


def test_the_nodes_used_least_are_emptied_while_their_pods_find_another_place(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), node("n3"), deployment("web", 5))
    code, data = asked(capsys, "compact", "--cluster", cluster)
    (pool,) = data["freed"]
    assert (code, pool["needed"], len(pool["freed"])) == (ExitCode.OK, 2, 1)
    assert data["commands"] == [f"kubectl drain {pool['freed'][0]} --ignore-daemonsets --delete-emptydir-data"]
    assert groups(data, "pools", "pods") == {"general": (5, 5)}


def test_pods_are_packed_from_scratch_on_as_few_nodes_as_hold_them(write: Write, capsys: Capture) -> None:
    nodes = [node(f"n{n}") for n in range(6)]
    agent = deployment("agent", 1, cpu="1")
    agent["kind"] = "DaemonSet"
    del agent["spec"]["replicas"]
    cluster = write("cluster.yaml", *nodes, deployment("web", 7), agent, pod("never", "9"))
    code, data = asked(capsys, "compact", "--repack", "3", "--seed", "5", "--cluster", cluster)
    assert code == ExitCode.OK
    assert data["repackedPools"] == [{"name": "general", "nodes": 6, "needed": 3}]  # 3 CPUs of each beside the agent
    assert [(one["seed"], one["needed"]) for one in data["trials"]] == [(5, 3), (6, 3), (7, 3)]
    assert data["summary"] == [
        "3 of 6 nodes are enough for 8 pods placed from scratch (90th percentile of 3 trials; 3 to 3)",
        "1 pod finds no place on all nodes either, and does not count",
    ]
    code, error = refused(capsys, "compact", "--repack", "3", "--cluster", write("empty.yaml", node("n1")))
    assert (code, "there is nothing to pack" in error) == (ExitCode.NO_ANSWER, True)


def test_nodes_with_pods_that_nothing_makes_again_are_kept(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), pod("bare", nodeSelector={HOST: "n1"}))
    code, data = asked(capsys, "compact", "--cluster", cluster)
    (pool,) = data["freed"]
    assert (code, pool["needed"], pool["freed"]) == (ExitCode.OK, 1, ["n2"])
    assert any("n1" in one and "no controller" in one for one in data["summary"])


def test_a_token_holds_until_the_cluster_changes(write: Write, capsys: Capture) -> None:
    objects = [node("n1"), node("n2"), deployment("web", 2)]
    cluster = write("cluster.yaml", *objects)
    token = asked(capsys, "cordon", "n1", "--cluster", cluster)[1]["token"]
    assert asked(capsys, "drain", "n1", "--cluster", cluster, "--if-unchanged", token)[0] == ExitCode.OK
    changed = write("cluster.yaml", *objects[:2], deployment("web", 3))
    code, error = refused(capsys, "drain", "n1", "--cluster", changed, "--if-unchanged", token)
    assert (code, error) == (ExitCode.CHANGED, "Error: the cluster has changed since: Deployment\n")
    code, error = refused(capsys, "drain", "n1", "--cluster", changed, "--if-unchanged", "nonsense")
    assert code == ExitCode.NO_ANSWER
    assert "no token" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["drain"], "give the names of nodes, or -l SELECTOR"),
        (["drain", "n11"], "there is no node n11; did you mean n1?"),
        (["drain", "-l", "pool=none"], "no node has the labels 'pool=none'"),
        (["drain", "-l", "=!"], "is no label selector"),
        (["add", "--count", "1"], "--count takes one --like NODE|POOL"),
        (["add", "--like", "n1"], "give --count or --until-placed"),
        (["add", "--like", "n1", "--count", "1", "--until-placed"], "not both"),
        (["add", "--like", "generall", "--count", "1"], "there is no node or pool generall; did you mean general?"),
        (["compact", "--pool", "generall"], "there is no pool generall; did you mean general?"),
        (["drian"], "No such command 'drian'"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_mistakes_are_named_and_have_a_code_of_their_own(
    arguments: list[str], said: str, write: Write, capsys: Capture
) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"))
    given = arguments if arguments == ["drian"] else [*arguments, "--cluster", cluster]
    code, error = refused(capsys, *given)
    assert code == ExitCode.NO_ANSWER
    assert said in error


def test_mistakes_in_manifests_are_named_at_their_place(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), pod("fixed"))
    two = write("two.yaml", pod("a"), pod("b"))
    code, error = refused(capsys, "fit", "-f", two, "--cluster", cluster)
    assert (code, "give one pod or workload to copy; the files have 2" in error) == (ExitCode.NO_ANSWER, True)
    other = write("other.yaml", pod("fixed", "2"))
    code, error = refused(capsys, "apply", "-f", other, "--cluster", cluster)
    assert code == ExitCode.NO_ANSWER
    assert "other.yaml" in error
    assert "Pod default/fixed" in error
    nameless = pod("a")
    nameless["metadata"] = {"generateName": "a-"}
    code, error = refused(capsys, "apply", "-f", write("nameless.yaml", nameless), "--cluster", cluster)
    assert (code, "metadata.name: is needed to apply an object" in error) == (ExitCode.NO_ANSWER, True)
    foreign = write("foreign.yaml", pod("a", schedulerName="another"))
    code, error = refused(capsys, "fit", "-f", foreign, "--cluster", cluster)
    assert (code, "the scheduler another" in error) == (ExitCode.NO_ANSWER, True)
    own = deployment("own", 1)
    own["kind"], own["spec"]["serviceName"] = "StatefulSet", "own"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    own["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    code, error = refused(capsys, "fit", "-f", write("own.yaml", own), "--cluster", cluster)
    assert (code, "use what-if apply" in error) == (ExitCode.NO_ANSWER, True)


def test_every_pod_is_listed_and_none_is_said_to_be_left_out(write: Write, capsys: Capture) -> None:
    nodes = [node("n1", cpu="64"), node("n2", cpu="64")]
    for one in nodes:
        one["status"]["allocatable"]["pods"] = "200"
    cluster = write("cluster.yaml", *nodes, deployment("web", 120))
    assert main(["what-if", "drain", "n1", "--cluster", cluster, "--pods"]) == ExitCode.FAILURE
    table = capsys.readouterr().out
    assert sum(line.strip().startswith("default/web-") for line in table.splitlines()) == 60
    assert "more" not in table.partition("Pending afterwards")[0]


def test_tables_and_page_say_the_same(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2", pool="other"), deployment("web", 4))
    assert main(["what-if", "drain", "n1", "--cluster", cluster]) == ExitCode.OK
    table = capsys.readouterr().out
    assert table.startswith("drain n1: works\n- 2 pods would run on another node\n")
    assert "kubectl drain n1" in table
    assert main(["what-if", "drain", "n1", "--cluster", cluster, "--pods"]) == ExitCode.OK
    assert "default/web-" in capsys.readouterr().out
    assert main(["what-if", "drain", "n1", "--cluster", cluster, "-o", "html"]) == ExitCode.OK
    page = capsys.readouterr().out
    for text in (
        "<title>drain n1: works</title>",
        "2 pods would run on another node",
        "Deployment default/web",
        "Token",
    ):
        assert text in page


def test_another_configuration_is_compared_on_the_same_cluster(write: Write, capsys: Capture) -> None:
    cluster = write("cluster.yaml", node("n1"), node("n2"), deployment("web", 2))
    scoring = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": scoring}]}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    spread = {"enabled": [{"name": "NodeResourcesFit", "weight": 100}]}
    new = write("new.yaml", {**head, "profiles": [{**profile, "plugins": {"score": spread}}]})
    assert main(["what-if", "config", new, "--cluster", cluster, "-o", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["verdict"], len(data["moved"])) == ("different", 1)
    assert main(["what-if", "config", new, "--cluster", cluster, "--config", new, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "same"
    code, error = refused(capsys, "config", new, "--cluster", cluster, "--if-unchanged", "Node=1")
    assert (code, "changed since: Deployment, Node" in error) == (ExitCode.CHANGED, True)
