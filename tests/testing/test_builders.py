import msgspec
import pytest

from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api import HostPort, Pod, Taint, Toleration, host_ports
from trio_sched.testing import container, node, node_affinity, pod, requirement, taint, term, toleration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu=yes:NoSchedule", Taint(key="gpu", value="yes", effect="NoSchedule")),
        ("gpu:NoExecute", Taint(key="gpu", effect="NoExecute")),
        ("gpu=:NoExecute", Taint(key="gpu", effect="NoExecute")),
    ],
)
def test_taints_are_written_as_kubectl_writes_them(text: str, expected: Taint) -> None:
    assert taint(text) == expected


@pytest.mark.parametrize("text", ["gpu", "gpu=yes", ":NoSchedule", ""])
def test_a_taint_without_effect_or_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a taint as key=value:Effect"):
        taint(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu=yes:NoSchedule", Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule")),
        ("gpu:NoSchedule", Toleration(key="gpu", operator="Exists", effect="NoSchedule")),
        ("gpu", Toleration(key="gpu", operator="Exists")),
        ("", Toleration(operator="Exists")),
    ],
)
def test_tolerations_are_written_like_the_taints_they_tolerate(text: str, expected: Toleration) -> None:
    assert toleration(text) == expected


def test_requirements_are_a_key_an_operator_and_values() -> None:
    found = requirement("disk In ssd nvme")
    assert (found.key, found.operator, found.values) == ("disk", "In", ("ssd", "nvme"))
    assert requirement("gpu Exists").values is None


def test_node_affinity_takes_required_and_preferred_terms() -> None:
    affinity = node_affinity(term("a Exists"), preferred=[(5, term(fields=["metadata.name In n"]))]).node_affinity
    assert affinity is not None
    required = affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert required.node_selector_terms == (term("a Exists"),)
    (preferred,) = affinity.preferred_during_scheduling_ignored_during_execution or ()
    assert preferred.weight == 5
    assert preferred.preference.match_fields is not None


def test_a_pod_states_only_what_matters() -> None:
    plain = pod()
    assert (plain.key, plain.node_name, plain.status.phase) == ("default/pod", "", "Pending")
    assert pod(node_name="n").status.phase == "Running"
    assert pod("a").uid != pod("b").uid
    assert pod("a", uid="second").uid == "second"


def test_amounts_go_to_the_only_container() -> None:
    resources = pod_resources(pod(cpu="500m", memory="1Gi", requests={"example.com/gpu": 2}, overhead={"cpu": "10m"}))
    assert resources.requested.cpu_milli == 510
    assert resources.requested.memory_bytes == 1 << 30
    assert resources.requested.scalars == (("example.com/gpu", 2),)


def test_containers_replace_the_one_that_is_made() -> None:
    both = pod(containers=[container("a", cpu="1"), container("b", cpu="2")], init_containers=[container("i", cpu="5")])
    assert pod_resources(both).requested.cpu_milli == 5000
    beside = pod(cpu="1", init_containers=[container("proxy", cpu="1", sidecar=True, host_ports=[53])])
    assert pod_resources(beside).requested.cpu_milli == 2000
    assert host_ports(beside) == (HostPort("0.0.0.0", "TCP", 53),)


def test_a_node_has_room_and_its_name_as_a_label() -> None:
    made = node("n", cpu="2", allocatable={"example.com/gpu": 1}, labels={"zone": "a"}, images={"i:1": 5})
    assert made.labels == {"kubernetes.io/hostname": "n", "zone": "a"}
    assert made.status.allocatable == {"cpu": "2", "memory": "16Gi", "pods": 110, "example.com/gpu": 1}
    assert made.status.images is not None
    assert made.status.images[0].names == ("i:1",)


def test_what_is_built_is_what_the_wire_would_bring() -> None:
    made = pod("p", cpu="1", tolerations=["a=b:NoSchedule"], gates=["wait"], labels={"x": "y"}, priority=7)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Pod) == made
