from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from trio_sched.snapshot import topology_columns
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.topology_columns import ABSENT, TopologyColumns

ZONES = [{"zone": "a"}, {"zone": "b", "disk": "ssd"}, {}]


def values(topology: TopologyColumns, key: str) -> list[str | None]:
    column = topology.column(key)
    return [column.values.values[i] for i in column.ids[: topology.count]]


# --- label columns --------------------------------------------------------------------------------------------------


def test_a_column_holds_the_id_of_each_rows_value_and_0_where_the_label_is_absent() -> None:
    column = TopologyColumns(ZONES).column("zone")
    assert column.ids.tolist() == [1, 2, ABSENT]
    assert column.values.values == [None, "a", "b"]


def test_a_column_follows_the_nodes_once_it_was_asked_for() -> None:
    topology = TopologyColumns(ZONES)
    column = topology.column("zone")
    topology.add({"zone": "c"})
    topology.update(0, {"zone": "b"})
    topology.update(1, {"disk": "ssd"})
    assert topology.column("zone") is column
    assert values(topology, "zone") == ["b", None, None, "c"]
    assert values(topology, "disk") == [None, "ssd", None, None]


def test_the_last_row_takes_the_place_of_a_removed_one() -> None:
    topology = TopologyColumns([{"zone": name} for name in "abc"])
    assert values(topology, "zone") == ["a", "b", "c"]
    topology.remove(0)
    assert (topology.count, values(topology, "zone"), values(topology, "later")) == (2, ["c", "b"], [None, None])
    topology.remove(1)
    assert values(topology, "zone") == ["c"]


def test_ids_stay_the_same_when_a_value_is_gone() -> None:
    topology = TopologyColumns(ZONES)
    topology.column("zone")
    topology.update(0, {})
    topology.add({"zone": "a"})
    assert topology.column("zone").ids[:4].tolist() == [ABSENT, 2, ABSENT, 1]


def test_columns_grow() -> None:
    topology = TopologyColumns()
    topology.column("zone")
    for i in range(200):
        topology.add({"zone": str(i % 7)})
    assert values(topology, "zone") == [str(i % 7) for i in range(200)]
    assert topology.capacity >= 200
    assert len(topology.column("zone").ids) == len(topology.column("later").ids) == topology.capacity


def test_columns_cannot_be_written_to() -> None:
    topology = TopologyColumns(ZONES)
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            topology.column("zone").ids[0] = 2
        topology.add({})  # makes the arrays grow


def test_has_everywhere_follows_the_nodes() -> None:
    topology = TopologyColumns(ZONES[:2])
    assert (topology.has_everywhere("zone"), topology.has_everywhere("disk")) == (True, False)
    topology.add({})
    assert not topology.has_everywhere("zone")
    topology.update(2, {"zone": "c"})
    assert topology.has_everywhere("zone")
    topology.update(0, {})
    assert not topology.has_everywhere("zone")
    topology.remove(0)
    assert topology.has_everywhere("zone")


# --- generation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda topology: topology.add({}),
        lambda topology: topology.update(1, {"zone": "c"}),
        lambda topology: topology.update(1, ZONES[1]),
        lambda topology: topology.remove(2),
    ],
    ids=["add", "update", "update of the spec", "remove"],
)
def test_every_change_is_another_generation(change: Callable[[TopologyColumns], object]) -> None:
    topology = TopologyColumns(ZONES)
    before = topology.generation
    topology.column("zone")
    topology.has_everywhere("zone")
    topology.mask("all", lambda: np.ones(3, dtype=np.bool_))
    assert topology.generation == before
    change(topology)
    assert topology.generation == before + 1


# --- masks ----------------------------------------------------------------------------------------------------------


def test_a_mask_covers_all_rows_there_is_room_for() -> None:
    topology = TopologyColumns(ZONES)
    topology.add({})
    mask = topology.mask("some", lambda: np.array([True, False, True, True]))
    assert len(mask.rows) == topology.capacity > 4
    assert np.flatnonzero(mask.rows).tolist() == [0, 2, 3]


def test_a_mask_is_selected_once_per_key_and_generation() -> None:
    topology, selected = TopologyColumns(ZONES), []

    def select() -> BoolArray:
        selected.append(topology.count)
        return np.ones(topology.count, dtype=np.bool_)

    mask = topology.mask("all", select)
    assert topology.mask("all", select) is mask
    topology.remove(0)
    assert topology.mask("all", select).rows.tolist() == [True, True, False]
    topology.mask("others", select)
    assert selected == [3, 2, 2]


def test_masks_beyond_the_limit_are_selected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_columns, "_MAX_MASKS", 2)
    topology = TopologyColumns(ZONES)
    for key in (0, 1, 2, 0):
        mask = topology.mask(key, lambda key=key: np.arange(3) == key)
        assert np.flatnonzero(mask.rows).tolist() == [key]


# --- copies ---------------------------------------------------------------------------------------------------------


def test_a_copy_holds_the_rows_asked_for_in_that_order() -> None:
    copy = TopologyColumns(ZONES).copy_of_rows([2, 0])
    assert (copy.count, values(copy, "zone")) == (2, [None, "a"])


def test_value_ids_mean_the_same_in_copy_and_original_also_those_given_later() -> None:
    topology = TopologyColumns(ZONES)
    topology.column("zone")
    copy = topology.copy_of_rows([1])
    assert copy.column("zone").ids.tolist() == [2]
    copy.add({"zone": "only-in-the-copy"})
    topology.add({"zone": "z"})
    assert copy.column("zone").values is topology.column("zone").values
    assert topology.column("zone").ids[3] == 4


def test_changes_of_a_copy_leave_the_original_alone() -> None:
    topology = TopologyColumns(ZONES)
    generation = topology.generation
    copy = topology.copy_of_rows([0, 1, 2])
    copy.update(0, {"zone": "z"})
    copy.remove(1)
    assert values(topology, "zone") == ["a", "b", None]
    assert topology.generation == generation


def test_after_any_history_the_columns_are_those_of_fresh_ones() -> None:
    rng, topology, plain = Random(3), TopologyColumns(), list[dict[str, str]]()
    for _ in range(500):
        labels = {key: rng.choice("abc") for key in ("zone", "rack") if rng.random() < 0.8}
        if not plain or rng.random() < 0.4:
            plain.append(labels)
            topology.add(labels)
        elif rng.random() < 0.5:
            row = rng.randrange(len(plain))
            plain[row] = labels
            topology.update(row, labels)
        else:
            row = rng.randrange(len(plain))
            plain[row] = plain[-1]
            plain.pop()
            topology.remove(row)
        for key in ("zone", "rack") if rng.random() < 0.3 else ("zone",):
            assert values(topology, key) == [labels.get(key) for labels in plain]
            assert topology.has_everywhere(key) is all(key in labels for labels in plain)
