from collections.abc import Callable, Iterable
from random import Random

import numpy as np
import pytest

from trio_sched.snapshot import sized_cache, topology_columns
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.topology_columns import ABSENT, Topology, TopologyColumns, TopologyRows

ZONES = [{"zone": "a"}, {"zone": "b", "disk": "ssd"}, {}]


def topology_of(labels: Iterable[dict[str, str]]) -> TopologyColumns:
    topology = TopologyColumns()
    for of_node in labels:
        topology.add(of_node)
    return topology


def values(topology: Topology, key: str) -> list[str | None]:
    column = topology.column(key)
    return [column.values.values[i] for i in column.ids[: topology.count]]


# --- label columns --------------------------------------------------------------------------------------------------


def test_a_column_holds_the_id_of_each_rows_value_and_0_where_the_label_is_absent() -> None:
    column = topology_of(ZONES).column("zone")
    assert column.ids[:3].tolist() == [1, 2, ABSENT]
    assert column.values.values == [None, "a", "b"]


def test_a_column_follows_the_nodes_once_it_was_asked_for() -> None:
    topology = topology_of(ZONES)
    column = topology.column("zone")
    topology.add({"zone": "c"})
    topology.update(0, {"zone": "b"})
    topology.update(1, {"disk": "ssd"})
    assert topology.column("zone") is column
    assert values(topology, "zone") == ["b", None, None, "c"]
    assert values(topology, "disk") == [None, "ssd", None, None]


def test_the_last_row_takes_the_place_of_a_removed_one() -> None:
    topology = topology_of([{"zone": name} for name in "abc"])
    assert values(topology, "zone") == ["a", "b", "c"]
    topology.remove(0)
    assert (topology.count, values(topology, "zone"), values(topology, "later")) == (2, ["c", "b"], [None, None])
    topology.remove(1)
    assert values(topology, "zone") == ["c"]


def test_the_id_of_a_value_that_is_gone_is_given_to_another() -> None:
    topology = topology_of(ZONES)
    topology.column("zone")
    topology.update(0, {})
    assert topology.column("zone").values.get("a") is None
    topology.add({"zone": "z"})
    assert topology.column("zone").ids[:4].tolist() == [ABSENT, 2, ABSENT, 1]
    assert topology.column("zone").values.values == [None, "z", "b"]


def test_a_column_is_as_long_as_there_are_values_however_many_there_were() -> None:
    topology = topology_of([{"zone": "first"}])
    for i in range(1000):
        topology.add({"zone": f"new-{i}"})
        topology.column("zone")
        topology.remove(0)
    assert len(topology.column("zone").values) <= 3
    for i in range(1000):
        topology.add({"zone": f"peak-{i}"})
    assert len(topology.column("zone").values) > 1000
    while topology.count > 1:
        topology.remove(0)
        topology.column("zone")
    assert len(topology.column("zone").values) <= 64
    assert (topology.capacity, len(topology.column("zone").ids)) == (64, 64)


def test_only_labels_of_nodes_have_columns() -> None:
    topology = topology_of(ZONES)
    for i in range(100):
        assert values(topology, f"key-{i}") == [None, None, None]
    topology.column("disk")
    assert len(topology._columns) == 1
    topology.update(1, {"zone": "b"})
    assert values(topology, "disk") == [None, None, None]
    assert len(topology._columns) == 0


def test_columns_beyond_the_limit_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_columns, "_MIN_COLUMNS", 2)
    monkeypatch.setattr(topology_columns, "_MAX_CELLS", 1)
    topology = topology_of([{"a": "1", "b": "2", "c": "3"}, {"a": "4"}])
    topology.column("a")
    before = topology.generation
    for key, expected in (("b", ["2", None]), ("c", ["3", None]), ("a", ["1", "4"])):
        assert values(topology, key) == expected
    assert len(topology._columns) == 2
    assert topology.generation > before  # ids may be others, so what was counted by them is counted again


def test_columns_grow() -> None:
    topology = TopologyColumns()
    topology.column("zone")
    for i in range(200):
        topology.add({"zone": str(i % 7)})
    assert values(topology, "zone") == [str(i % 7) for i in range(200)]
    assert topology.capacity >= 200
    assert len(topology.column("zone").ids) == len(topology.column("later").ids) == topology.capacity


def test_columns_cannot_be_written_to() -> None:
    topology = topology_of(ZONES)
    for _attempt in range(2):
        with pytest.raises(ValueError, match="read-only"):
            topology.column("zone").ids[0] = 2
        for _ in range(100):
            topology.add({})  # makes the arrays grow


def test_has_everywhere_follows_the_nodes() -> None:
    topology = topology_of(ZONES[:2])
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
    topology = topology_of(ZONES)
    before = topology.generation
    topology.column("zone")
    topology.has_everywhere("zone")
    topology.mask("all", lambda: np.ones(3, dtype=np.bool_))
    assert topology.generation == before
    change(topology)
    assert topology.generation == before + 1


# --- masks ----------------------------------------------------------------------------------------------------------


def test_a_mask_covers_all_rows_there_is_room_for() -> None:
    topology = topology_of(ZONES)
    topology.add({})
    mask = topology.mask("some", lambda: np.array([True, False, True, True]))
    assert len(mask.rows) == topology.capacity > 4
    assert np.flatnonzero(mask.rows).tolist() == [0, 2, 3]


def test_a_mask_is_selected_once_per_key_and_generation() -> None:
    topology, selected = topology_of(ZONES), []

    def select() -> BoolArray:
        selected.append(topology.count)
        return np.ones(topology.count, dtype=np.bool_)

    mask = topology.mask("all", select)
    assert topology.mask("all", select) is mask
    topology.remove(0)
    assert topology.mask("all", select).rows[:3].tolist() == [True, True, False]
    topology.mask("others", select)
    assert selected == [3, 2, 2]


def test_masks_beyond_the_limit_are_selected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_columns, "_MAX_MASKS", 2)
    topology = topology_of(ZONES)
    for key in (0, 1, 2, 0):
        mask = topology.mask(key, lambda key=key: np.arange(3) == key)
        assert np.flatnonzero(mask.rows).tolist() == [key]


def test_masks_with_large_keys_are_selected_anew_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 20)
    topology, nobody = topology_of(ZONES), np.zeros(3, dtype=np.bool_)
    large = topology.mask("large", lambda: nobody, texts=15)
    small = topology.mask("small", lambda: nobody)
    assert (topology.mask("large", lambda: nobody), topology.mask("small", lambda: nobody)) == (large, small)
    topology.mask("also large", lambda: nobody, texts=15)
    assert topology.mask("small", lambda: nobody) is not small


# --- copies ---------------------------------------------------------------------------------------------------------


def test_a_copy_holds_the_rows_asked_for_in_that_order() -> None:
    copy = TopologyRows(topology_of(ZONES), [2, 0])
    assert (copy.count, values(copy, "zone")) == (2, [None, "a"])
    assert (copy.has_everywhere("zone"), copy.has_everywhere("disk")) == (False, False)
    copy = TopologyRows(topology_of(ZONES), [1, 0])
    assert (copy.has_everywhere("zone"), copy.has_everywhere("disk")) == (True, False)


def test_value_ids_mean_the_same_in_copy_and_original() -> None:
    topology = topology_of(ZONES)
    copy = TopologyRows(topology, [1])
    assert copy.column("zone").ids.tolist() == [2]
    topology.update(1, {"zone": "z"})
    assert copy.column("zone").values is topology.column("zone").values
    assert (values(copy, "zone"), values(topology, "zone")) == (["z"], ["a", "z", None])
    copy.add(0)
    assert values(copy, "zone") == ["z", "a"]


def test_a_change_of_copy_or_original_is_another_generation_of_the_copy() -> None:
    topology = topology_of(ZONES)
    copy = TopologyRows(topology, [1])
    generations = [copy.generation]
    copy.add(0)
    generations.append(copy.generation)
    topology.update(1, {"zone": "z"})
    generations.append(copy.generation)
    assert generations == sorted(set(generations))


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
