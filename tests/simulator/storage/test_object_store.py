import msgspec
import pytest

from trio_sched.simulator.storage.object_store import (
    Change,
    HistoryLost,
    KeyTaken,
    ObjectStore,
    StoredObject,
    VersionConflict,
)


def put(store: ObjectStore, key: str, value: int = 0) -> StoredObject:
    return store.create("things", key, {"metadata": {"name": key}, "value": value})


def test_every_write_gets_a_version_of_its_own() -> None:
    store = ObjectStore()
    versions = [put(store, "a").version, put(store, "b").version]
    changed = store.replace("things", store.collection("things").objects["a"], {"metadata": {"name": "a"}})
    assert versions[0] < versions[1] < changed.version == store.version
    assert changed.fields["metadata"]["resourceVersion"] == str(changed.version)


def test_the_encoded_object_equals_its_fields() -> None:
    stored = put(ObjectStore(), "a", 7)
    assert msgspec.json.decode(stored.encoded(b'{"kind":"Thing",')) == {"kind": "Thing", **stored.fields}


def test_creating_a_key_twice_is_refused() -> None:
    store = ObjectStore()
    put(store, "a")
    with pytest.raises(KeyTaken):
        put(store, "a")


def test_replacing_what_is_no_longer_stored_is_a_conflict() -> None:
    store = ObjectStore()
    first = put(store, "a")
    store.replace("things", first, {"metadata": {}, "value": 1})
    with pytest.raises(VersionConflict) as caught:
        store.replace("things", first, {"metadata": {}, "value": 2})
    assert (caught.value.expected, caught.value.found) == (first.version, store.version)


def test_a_deletion_shows_the_last_state_at_its_own_version() -> None:
    store = ObjectStore()
    first = put(store, "a", 5)
    gone = store.delete("things", first)
    assert gone.version == first.version + 1
    assert gone.fields["value"] == 5
    assert store.get("things", "a") is None


def test_listeners_get_every_change_until_they_stop() -> None:
    store = ObjectStore()
    changes: list[Change] = []
    stop = store.collection("things").listen(changes.append)
    first = put(store, "a")
    store.delete("things", first)
    stop()
    put(store, "b")
    assert [change.type for change in changes] == ["ADDED", "DELETED"]


def test_history_has_the_changes_after_a_version() -> None:
    store = ObjectStore()
    first = put(store, "a")
    put(store, "b")
    store.create("others", "x", {"metadata": {}})
    assert [change.current.key for change in store.collection("things").since(first.version)] == ["b"]


def test_history_beyond_its_limit_is_lost() -> None:
    store = ObjectStore(history_limit=2)
    first = put(store, "a")
    for name in "bcd":
        put(store, name)
    with pytest.raises(HistoryLost, match="too old resource version"):
        store.collection("things").since(first.version)
    assert len(store.collection("things").since(store.version - 2)) == 2


def test_compaction_forgets_everything_before_now() -> None:
    store = ObjectStore()
    first = put(store, "a")
    put(store, "b")
    store.compact()
    with pytest.raises(HistoryLost):
        store.collection("things").since(first.version)
    assert store.collection("things").since(store.version) == []


def test_objects_can_be_read_at_an_earlier_version() -> None:
    store = ObjectStore()
    a, b = put(store, "a", 1), put(store, "b", 1)
    then = store.version
    store.replace("things", a, {"metadata": {}, "value": 2})
    store.delete("things", b)
    put(store, "c")
    past = store.collection("things").as_of(then)
    assert {key: stored.fields["value"] for key, stored in past.items()} == {"a": 1, "b": 1}


def test_lists_are_in_key_order_within_a_namespace() -> None:
    store = ObjectStore()
    for key in ("b/2", "a-b/1", "a/2", "a/1", "a0/1"):
        put(store, key)
    found = store.collection("things")
    assert [stored.key for stored in found.in_order("a")] == ["a/1", "a/2"]
    assert [stored.key for stored in found.in_order()] == sorted(found.objects)


def test_watchers_share_one_line_per_change() -> None:
    store = ObjectStore()
    put(store, "a")
    change = store.collection("things").history[0]
    assert change.line("ADDED", b"{") is change.line("ADDED", b"{")
    assert msgspec.json.decode(change.line("ADDED", b"{"))["object"]["metadata"]["name"] == "a"
