import pytest

from trio_sched.plugin_api import Action, ClusterEvent, Hint, Resource, on

ANNOTATION = Action.UPDATE_POD_ANNOTATION
UPDATES = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        ((Resource.NODE, Action.ADD), (Resource.NODE, Action.ADD), True),
        ((Resource.NODE, Action.ADD), (Resource.NODE, Action.DELETE), False),
        ((Resource.NODE, Action.ADD | UPDATES), (Resource.NODE, Action.UPDATE_NODE_TAINT), True),
        ((Resource.NODE, UPDATES), (Resource.NODE, Action.UPDATE_NODE_CONDITION), False),
        ((Resource.NODE, UPDATES), (Resource.NODE, Action.UPDATE), False),
        ((Resource.NODE, Action.UPDATE), (Resource.NODE, Action.UPDATE), True),
        ((Resource.NODE, Action.UPDATE), (Resource.NODE, Action.UPDATE_NODE_LABEL), True),
        ((Resource.NODE, Action.ALL), (Resource.NODE, Action.UPDATE), True),
        ((Resource.POD, Action.DELETE), (Resource.ASSIGNED_POD, Action.DELETE), True),
        ((Resource.POD, Action.UPDATE), (Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL), True),
        ((Resource.ASSIGNED_POD, Action.DELETE), (Resource.UNSCHEDULABLE_POD, Action.DELETE), False),
        ((Resource.POD, Action.UPDATE), (Resource.TARGET_POD, Action.UPDATE_POD_LABEL), True),
        ((Resource.POD, Action.ADD), (Resource.UNSCHEDULED_POD, Action.ADD), True),
        ((Resource.UNSCHEDULABLE_POD, Action.UPDATE), (Resource.TARGET_POD, Action.UPDATE), True),
        ((Resource.UNSCHEDULABLE_POD, Action.ADD), (Resource.UNSCHEDULED_POD, Action.ADD), True),
        ((Resource.TARGET_POD, Action.ALL), (Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL), True),
        ((Resource.TARGET_POD, Action.ALL), (Resource.UNSCHEDULABLE_POD, Action.ADD), False),
        ((Resource.TARGET_POD, ANNOTATION), (Resource.UNSCHEDULABLE_POD, ANNOTATION), True),
        ((Resource.UNSCHEDULED_POD, Action.ALL), (Resource.UNSCHEDULABLE_POD, Action.ADD), True),
        ((Resource.UNSCHEDULED_POD, Action.ALL), (Resource.UNSCHEDULABLE_POD, Action.UPDATE), False),
        ((Resource.TARGET_POD, Action.ALL), (Resource.UNSCHEDULED_POD, Action.ADD), False),
        ((Resource.ASSIGNED_POD, Action.UPDATE), (Resource.TARGET_POD, Action.UPDATE), False),
        ((Resource.POD, Action.UPDATE), (Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP), True),
        ((Resource.NODE, Action.UPDATE), (Resource.NODE, Action.UPDATE_NODE_PREEMPTION_POLICY), True),
        ((Resource.POD, Action.UPDATE_POD_SCALE_UP), (Resource.TARGET_POD, Action.UPDATE), False),
        ((Resource.POD, Action.UPDATE_POD_SCALE_UP), (Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP), True),
        ((Resource.POD, UPDATES), (Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP), False),
        ((Resource.NODE, Action.UPDATE), (Resource.TARGET_POD, Action.UPDATE_POD_SCALE_UP), False),
        ((Resource.NODE, Action.ALL), (Resource.ASSIGNED_POD, Action.ADD), False),
        ((Resource.WILDCARD, Action.ADD), (Resource.CSI_NODE, Action.ADD), True),
        ((Resource.WILDCARD, Action.ALL), ("widgets.v1.example.com", Action.DELETE), True),
        ((Resource.NODE, Action.ALL), (Resource.WILDCARD, Action.ALL), False),
        ((Resource.UNSCHEDULABLE_POD, ANNOTATION), (Resource.UNSCHEDULABLE_POD, ANNOTATION), True),
        ((Resource.POD, ANNOTATION | Action.ADD), (Resource.ASSIGNED_POD, ANNOTATION), True),
        ((Resource.POD, ANNOTATION | Action.UPDATE_POD_LABEL), (Resource.ASSIGNED_POD, Action.UPDATE), False),
        ((Resource.POD, ANNOTATION | Action.UPDATE_POD_LABEL), (Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL), True),
        ((Resource.ASSIGNED_POD, ANNOTATION), (Resource.UNSCHEDULABLE_POD, ANNOTATION), False),
        ((Resource.POD, Action.ALL), (Resource.ASSIGNED_POD, ANNOTATION), False),
        ((Resource.WILDCARD, Action.ALL), (Resource.ASSIGNED_POD, ANNOTATION), False),
    ],
)
def test_a_registration_stands_for_events(
    registered: tuple[str, Action], incoming: tuple[str, Action], matches: bool
) -> None:
    assert ClusterEvent(*registered).matches(ClusterEvent(*incoming)) is matches


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), "AssignedPodDelete"),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE), "NodeUpdateNodeAllocatable"),
        (ClusterEvent(Resource.CSI_NODE, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(Resource.NODE, UPDATES), "Node"),
        (ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout"), "UnschedulableTimeout"),
    ],
)
def test_labels_are_those_of_the_metrics(event: ClusterEvent, label: str) -> None:
    assert event.label == label


def test_bits_are_those_of_the_original() -> None:
    singles = [action for action in Action.__members__.values() if action.bit_count() == 1 and action in Action.ALL]
    assert [int(action) for action in singles] == [2**i for i in range(13)]
    updates = Action(0)
    for action in singles[2:]:
        updates |= action
    assert updates == Action.UPDATE == 8188
    assert Action.ALL == 8191


def test_only_anything_whatsoever_is_the_wildcard() -> None:
    assert ClusterEvent(Resource.WILDCARD, Action.ALL).is_wildcard
    assert not ClusterEvent(Resource.WILDCARD, Action.ADD).is_wildcard
    assert not ClusterEvent(Resource.NODE, Action.ALL).is_wildcard


def test_a_registration_is_one_line() -> None:
    registration = on(Resource.NODE, Action.ADD, lambda pod, old, new: Hint.SKIP)
    assert registration.event == ClusterEvent(Resource.NODE, Action.ADD)
    assert registration.hint is not None
    assert on(Resource.NODE, Action.ADD).hint is None
