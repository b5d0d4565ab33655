"""What is said of a change besides what it does for the pod."""

from pathlib import Path

from explained import explained, titles
from filled_scheduler import scheduler_with

from contrib.scenarios import manifests
from trio_sched.explanation.commands import commands
from trio_sched.explanation.data import cause_text
from trio_sched.explanation.explanation import explain
from trio_sched.explanation.owners import workload_behind
from trio_sched.explanation.priorities import PriorityClass
from trio_sched.explanation.touches import Touch
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, owner_reference, pod


def notes_of(nodes: list[Node], pods: list[Pod], asked: Pod) -> dict[str, tuple[str, ...]]:
    """The title of each change that helps → what is said of it besides."""
    scheduler = scheduler_with(nodes, pods)
    cache = scheduler.cache
    found = explain(scheduler, asked)
    # Nothing that was tried is left.
    assert sorted(one.key for one in cache.unassigned.pods()) == sorted(one.key for one in pods if not one.node_name)
    return {remedy.change.title: remedy.notes for remedy in found.remedies.found}


def test_a_pod_that_could_take_the_place_first_is_named() -> None:
    nodes = [node("a", cpu="4", unschedulable=True)]
    rival, asked = pod("rival", cpu="3"), pod("asked", cpu="3")
    assert notes_of(nodes, [rival, asked], asked)["uncordon a"] == (
        "default/rival, which is pending too, could take this place first",
    )
    small, low = pod("small", cpu="1"), pod("low", cpu="3", priority=-1)
    assert notes_of(nodes, [small, low, asked], asked)["uncordon a"] == ()


def test_pods_that_could_take_the_place_together_are_named() -> None:
    nodes = [node("a", cpu="4", unschedulable=True)]
    asked = pod("asked", cpu="2")
    pair = [pod(f"rival-{number}", cpu="1500m") for number in (1, 2)]
    third = pod("third", cpu="1500m")
    assert notes_of(nodes, [*pair, third, asked], asked)["uncordon a"] == (
        "default/rival-1, default/rival-2, which are pending too, could take this place first",
    )
    assert notes_of(nodes, [pair[0], asked], asked)["uncordon a"] == ()


def test_a_change_after_which_those_run_too_that_could_come_first_is_the_first_one() -> None:
    nodes = [node("a", cpu="4", unschedulable=True), node("b", cpu="4", unschedulable=True)]
    first, second = pod("first", cpu="3", priority=10), pod("second", cpu="2")
    asked = pod("asked", cpu="2")
    assert list(notes_of(nodes[:1], [first, asked], asked))[:3] == [
        "uncordon a and request cpu ≤ 1",
        "2 more nodes like a (4 CPU, 16.0Gi each)",
        "uncordon a",
    ]
    remedy = explain(scheduler_with(nodes[:1], [first, asked]), asked).remedies.found[0]
    # The node takes pods when the pod leaves room for the other one.
    assert [command.partition(" -n ")[0] for command in commands(remedy.edited, asked, None)] == [
        "kubectl patch pod asked",
        "kubectl uncordon a",
    ]
    found = notes_of(nodes, [first, second, asked], asked)
    assert found["uncordon a and uncordon b"] == ()
    assert found["2 more nodes like a (4 CPU, 16.0Gi each)"] == ("then default/first runs as well",)
    scheduler = scheduler_with(nodes[:1], [first, second, asked])
    assert cause_text(explain(scheduler, asked)).endswith("default/first (priority 10), pending too, comes before it")


def test_place_is_found_beside_a_pod_that_is_nominated_to_the_only_node(tmp_path: Path) -> None:
    ours = {"schedulerName": "default-scheduler"}
    boss = manifests.as_stored(manifests.pod("boss", requests={"cpu": "3"}, priority=10, **ours))
    boss["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    asked = manifests.as_stored(manifests.pod(requests={"cpu": "2"}, **ours))
    data = explained([manifests.node("n1"), boss, asked], tmp_path, "asked", gates="")
    assert data["cause"]["reasons"] == ["KeptForNominatedPods"]
    assert "kept for pods that are nominated there: default/boss" in data["cause"]["text"]
    assert titles(data)[0] == "request cpu ≤ 1"


def test_a_nominated_pod_that_has_no_place_yet_could_take_another_one_first(tmp_path: Path) -> None:
    ours = {"schedulerName": "default-scheduler"}
    boss = manifests.as_stored(manifests.pod("boss", requests={"cpu": "3"}, priority=10, **ours))
    boss["status"] = {"phase": "Pending", "nominatedNodeName": "n1"}
    ending = manifests.being_deleted(manifests.pod("ending", on="n1", requests={"cpu": "3500m"}), "example.com/hold")
    asked = manifests.as_stored(manifests.pod(requests={"cpu": "2"}, **ours))
    data = explained([manifests.node("n1"), boss, ending, asked], tmp_path, "asked", gates="")
    assert titles(data) == ["2 more nodes like n1 (4 CPU, 8.0Gi each)", "one more node like n1 (4 CPU, 8.0Gi)"]


def test_the_cause_says_how_long_pods_that_may_be_evicted_take_to_end() -> None:
    asked = pod("asked", cpu="4", priority=10)
    slow = pod("slow", cpu="3", node_name="a", grace_seconds=120)
    quick = pod("quick", cpu="1", node_name="a", grace_seconds=0)
    scheduler = scheduler_with([node("a", cpu="4")], [slow, quick, asked])
    assert cause_text(explain(scheduler, asked)).endswith(
        ". It may evict default/slow, default/quick on a, which may take 120 s to end"
    )
    usual = pod("usual", cpu="4", node_name="a")
    scheduler = scheduler_with([node("a", cpu="4")], [usual, asked])
    assert cause_text(explain(scheduler, asked)).endswith("evict default/usual on a, which may take 30 s to end")


def test_a_pod_that_would_evict_another_of_its_controller_gains_nothing() -> None:
    owner = owner_reference("ReplicaSet", "web-7f")
    calm = pod("calm", cpu="4", node_name="a", owner=owner)
    asked = pod("asked", cpu="4", owner=owner)
    scheduler = scheduler_with([node("a", cpu="4")], [calm, asked])
    scheduler.object_cache.add_kind("PriorityClass")
    high = PriorityClass(metadata=ObjectMeta(name="high"), value=10)
    scheduler.object_cache.put("PriorityClass", "high", "", high)
    found = explain(scheduler, asked).remedies
    assert not any("priority" in one.change.title for one in found.found)
    assert "priority class high (10) (ReplicaSet web-7f makes a new one, then pending)" in found.tried


def test_a_rollout_that_would_stop_is_no_first_choice() -> None:
    """The old pods keep their places until new ones run, for which there is no other place."""

    def notes_with(cpu: str) -> dict[str, tuple[str, ...]]:
        labels, owner = {"pod-template-hash": "7f"}, owner_reference("ReplicaSet", "web-7f")
        of_web = [pod(f"web-{name}", cpu="3", node_name=name, labels=labels, owner=owner) for name in ("a", "b", "")]
        nodes = [node("a", cpu="4"), node("b", cpu="4"), node("c", cpu=cpu, taints=["gpu:NoSchedule"])]
        return notes_of(nodes, of_web, of_web[-1])

    stopped = notes_with("4")
    assert stopped["tolerate gpu"] == ("the rollout would stop: 1 of 3 new pods fit beside the old ones",)
    assert list(stopped).index("take the taint gpu off c") < list(stopped).index("tolerate gpu")
    whole = notes_with("8")
    assert whole["tolerate gpu"] == ()
    assert list(whole).index("tolerate gpu") < list(whole).index("take the taint gpu off c")


def test_a_smaller_request_is_one_with_which_all_pods_of_the_workload_run() -> None:
    """Beside the pod of nobody one node has 3 CPU left, the other one 2: for three pods."""
    labels, owner = {"pod-template-hash": "7f"}, owner_reference("ReplicaSet", "web-7f")
    of_web = [pod(f"web-{number}", cpu="6", memory="6Gi", labels=labels, owner=owner) for number in range(3)]
    running = pod("running", cpu="1", node_name="a")
    nodes = [node("a", cpu="4", memory="5Gi"), node("b", cpu="2", memory="5Gi")]
    found = notes_of(nodes, [running, *of_web], of_web[0])
    titles = [title for title in found if title.startswith("request")]
    assert titles == ["request cpu ≤ 1.5 and request memory ≤ 2.5Gi", "request cpu ≤ 3 and request memory ≤ 5.0Gi"]
    assert found[titles[0]] == ()
    assert found[titles[1]] == ("the rollout would stop: 1 of 3 new pods fit beside the old ones",)


def test_pending_pods_of_a_job_are_changed_together() -> None:
    owner = owner_reference("Job", "report")
    pods = [pod(f"report-{number}", cpu="3", owner=owner) for number in range(2)]
    scheduler = scheduler_with([node("a", cpu="2")], pods)
    both, one, *_others = explain(scheduler, pods[1]).remedies.found
    assert (both.change.title, both.touches, both.notes) == ("request cpu ≤ 1", Touch.POD_IN_PLACE, ())
    assert one.notes == ("1 of 2 pods run then that are pending like this one",)
    assert [command.partition(" -n ")[0] for command in commands(both.edited, pods[1], workload_behind(pods[1]))] == [
        "kubectl patch pod report-1",
        "kubectl patch pod report-0",
    ]
    assert [one.spec for one in scheduler.cache.unassigned.pods()] == [one.spec for one in pods]


def test_a_job_is_made_again_once_for_all_of_its_pods() -> None:
    """With the pod that runs already it is two pods that need a place."""
    owner, selector = owner_reference("Job", "report"), {"disk": "ssd"}
    pods = [pod(f"report-{name}", cpu="3", node_name=name, owner=owner, node_selector=selector) for name in ("a", "")]
    nodes = [node("a", cpu="3", labels=selector), node("b", cpu="3")]
    scheduler = scheduler_with(nodes, pods)
    (again,) = (one for one in explain(scheduler, pods[1]).remedies.found if one.change.title.startswith("no node"))
    assert (again.touches, again.notes) == (Touch.POD_RECREATED, ())
    (command,) = commands(again.edited, pods[1], workload_behind(pods[1]))
    assert command.startswith("kubectl get job report ")
    scheduler = scheduler_with(nodes, [*pods, pod("report-c", cpu="3", owner=owner, node_selector=selector)])
    (again,) = (one for one in explain(scheduler, pods[1]).remedies.found if one.change.title.startswith("no node"))
    assert again.notes == ("2 of 3 pods fit that are made again with it",)


def test_pods_that_a_stateful_set_makes_later_count_as_well() -> None:
    """It makes one after the other."""
    first = pod("db-0", cpu="4", owner=owner_reference("StatefulSet", "db"))
    scheduler = scheduler_with([node("a", cpu="3")], [first])
    found = {one.change.title: one.notes for one in explain(scheduler, first, missing=2).remedies.found}
    assert list(found)[:2] == ["request cpu ≤ 1", "request cpu ≤ 3"]
    assert found["request cpu ≤ 1"] == ()
    assert found["request cpu ≤ 3"] == ("1 of 3 pods run then that are pending like this one or made after it",)


def test_how_many_pods_of_the_workload_get_a_place_is_said() -> None:
    """The node that is uncordoned has room for two of them."""
    owner = owner_reference("StatefulSet", "db")
    pods = [pod(f"db-{number}", cpu="2", owner=owner) for number in range(3)]
    found = notes_of([node("a", cpu="4", unschedulable=True)], pods, pods[0])
    assert found["uncordon a"] == ("2 of 3 pods run then that are pending like this one",)
    assert list(found).index("2 more nodes like a (4 CPU, 16.0Gi each)") < list(found).index("uncordon a")


def test_a_pod_whose_replacement_fits_elsewhere_is_moved() -> None:
    """The other pod could be deleted as well, but what its controller makes in its place would be pending."""
    movable = pod("movable", cpu="2", node_name="a", owner=owner_reference("ReplicaSet", "web"))
    stuck = pod("stuck", cpu="1", memory="8Gi", node_name="b", owner=owner_reference("ReplicaSet", "db"))
    asked = pod("asked", cpu="4", memory="10Gi")
    nodes = [node("a", cpu="4"), node("b", cpu="4"), node("c", cpu="8", memory="4Gi")]
    found = notes_of(nodes, [movable, stuck, asked], asked)
    assert [title for title in found if title.startswith(("move", "delete"))] == [
        "move default/movable from a to c",
        "delete default/stuck",
    ]
    assert found["move default/movable from a to c"][-1].endswith("which would go to c")


def test_a_pod_whose_replacement_could_come_back_first_is_not_said_to_move() -> None:
    """The score of free CPU sends the replacement back to the larger node if it comes first."""
    running = pod("running", cpu="1", node_name="a", owner=owner_reference("ReplicaSet", "web"))
    asked = pod("asked", cpu="8")
    found = notes_of([node("a", cpu="8"), node("b", cpu="2")], [running, asked], asked)
    assert [title for title in found if title.startswith(("move", "delete"))] == ["delete default/running"]
    assert "what their controllers make in their place could take this place first" in found["delete default/running"]
    assert list(found).index("scale ReplicaSet default/web to 0") < list(found).index("delete default/running")


def test_a_workload_with_pods_elsewhere_is_not_scaled_down() -> None:
    """Nobody knows which of its pods its controller would delete."""
    web = owner_reference("ReplicaSet", "web")
    running = [pod(f"running-{name}", cpu="1", node_name=name, owner=web) for name in ("a", "b")]
    found = notes_of([node("a", cpu="8"), node("b", cpu="1")], running, pod("asked", cpu="8"))
    assert "delete default/running-a" in found
    assert not [title for title in found if title.startswith("scale")]


def test_a_pod_that_preempts_what_is_made_in_their_place_has_its_place() -> None:
    web = owner_reference("ReplicaSet", "web")
    running = pod("running", cpu="4", node_name="a", owner=web)
    asked = pod("asked", cpu="4", priority=10)
    found = notes_of([node("a", cpu="4")], [running, asked], asked)
    assert found["delete default/running"] == (
        "priority 0",
        "ReplicaSet web makes a new pod in place of default/running, which would be pending",
    )


def test_two_replacements_do_not_go_to_one_place() -> None:
    web = owner_reference("ReplicaSet", "web")
    running = [pod(f"web-{number}", cpu="2", node_name="a", owner=web) for number in (1, 2)]
    asked = pod("asked", cpu="4")
    found = notes_of([node("a", cpu="4"), node("b", cpu="2")], [*running, asked], asked)
    (notes,) = [notes for title, notes in found.items() if title.startswith("delete")]
    assert [note.rpartition("which would ")[2] for note in notes if "makes a new pod" in note] == [
        "go to b",
        "be pending",
    ]


def test_as_many_nodes_are_added_as_all_pods_of_the_workload_need() -> None:
    web = owner_reference("ReplicaSet", "web")
    pods = [pod(f"web-{number}", cpu="3", owner=web) for number in range(7)]
    other = pod("other", cpu="4")
    running = pod("running", cpu="6", node_name="a", owner=owner_reference("DaemonSet", "agents"))
    found = notes_of([node("a", cpu="8", unschedulable=True)], [running, *pods, other], pods[3])
    # Of its 8 CPU one such node has 2 left.
    assert [title for title in found if "like" in title] == ["a larger node like a, with cpu 9"]

    found = notes_of([node("a", cpu="7", unschedulable=True)], [*pods, other], pods[3])
    added = {title: notes[0] for title, notes in found.items() if "like" in title}
    assert list(added) == ["4 more nodes like a (7 CPU, 16.0Gi each)", "one more node like a (7 CPU, 16.0Gi)"]
    assert added["one more node like a (7 CPU, 16.0Gi)"] == "2 of 7 pods run then that are pending like this one"
    assert added["4 more nodes like a (7 CPU, 16.0Gi each)"] == "then all 7 pods run that are pending like this one"

    found = notes_of([node("a", cpu="7", unschedulable=True)], pods[:2], pods[0])
    assert [title for title in found if "like" in title] == ["one more node like a (7 CPU, 16.0Gi)"]
    assert found["one more node like a (7 CPU, 16.0Gi)"][0] == "then all 2 pods run that are pending like this one"

    many = [pod(f"web-{number}", cpu="3", owner=web) for number in range(21)]
    found = notes_of([node("a", cpu="7", unschedulable=True)], many, many[0])
    assert [title for title in found if "like" in title] == ["one more node like a (7 CPU, 16.0Gi)"]


def test_it_is_said_where_the_replacement_of_an_evicted_pod_would_go() -> None:
    running = pod("running", cpu="3", node_name="a", owner=owner_reference("ReplicaSet", "web"))
    asked = pod("asked", cpu="4")
    moved = notes_of([node("a", cpu="4"), node("b", cpu="3")], [running, asked], asked)
    assert moved["delete default/running"][-1] == (
        "ReplicaSet web makes a new pod in place of default/running, which would go to b"
    )
    stuck = notes_of([node("a", cpu="4")], [running, asked], asked)
    assert stuck["delete default/running"][-1].endswith("which would be pending")
    bare = pod("bare", cpu="3", node_name="a")
    assert notes_of([node("a", cpu="4")], [bare, asked], asked)["delete default/bare"][-1] == (
        "nothing recreates default/bare"
    )


def test_no_pod_of_the_same_workload_is_deleted() -> None:
    web, other = owner_reference("ReplicaSet", "web"), owner_reference("ReplicaSet", "other")
    running = pod("web-1", cpu="3", node_name="a", owner=web)
    asked = pod("web-2", cpu="3", owner=web)
    nodes = [node("a", cpu="3"), node("b", cpu="3")]
    mixed = notes_of(nodes, [running, pod("other-1", cpu="3", node_name="b", owner=other), asked], asked)
    assert [title for title in mixed if "delete" in title] == ["delete default/other-1"]
    alike = notes_of(nodes, [running, pod("web-3", cpu="3", node_name="b", owner=web), asked], asked)
    assert [title for title in alike if "delete" in title] == []
