from random import Random

from trio_sched.snapshot.vocabulary import (
    CPU_ROW,
    EPHEMERAL_STORAGE_ROW,
    MEMORY_ROW,
    Vocabulary,
    resource_vocabulary,
)


def test_each_value_gets_the_next_id_once() -> None:
    vocabulary = Vocabulary[str | None](None, None)
    assert [vocabulary.acquire(value) for value in ("a", "b", "a", None)] == [1, 2, 1, 0]
    assert vocabulary.values == [None, "a", "b"]
    assert (vocabulary.get("b"), vocabulary.get("c"), len(vocabulary)) == (2, None, 3)


def test_an_id_is_free_when_all_its_uses_are_released() -> None:
    vocabulary = Vocabulary("unused", "always")
    assert vocabulary.acquire("a") == vocabulary.acquire("a") == 1
    assert not vocabulary.release(1)
    assert vocabulary.release(1)
    assert (vocabulary.get("a"), vocabulary.values) == (None, ["always", "unused"])
    assert vocabulary.acquire("b") == 1


def test_permanent_values_are_never_released() -> None:
    vocabulary = Vocabulary("unused", "always")
    vocabulary.acquire("always")
    assert [vocabulary.release(0) for _ in range(3)] == [False, False, False]
    assert vocabulary.get("always") == 0


def test_compacting_leaves_the_values_in_use_with_new_ids() -> None:
    rng, vocabulary, used = Random(5), Vocabulary("", "first"), dict[str, int]()
    for value in map(str, range(500)):
        used[value] = vocabulary.acquire(value)
    for value in rng.sample(sorted(used), 480):
        vocabulary.release(used.pop(value))
    assert vocabulary.is_sparse
    new_ids = vocabulary.compact()
    assert len(vocabulary) == 21
    assert not vocabulary.is_sparse
    for value, old in used.items():
        assert vocabulary.values[new_ids[old]] == value
        assert vocabulary.get(value) == new_ids[old]
    assert vocabulary.acquire("next") == 21


def test_common_resources_have_fixed_rows() -> None:
    vocabulary = resource_vocabulary()
    rows = [vocabulary.get(name) for name in ("cpu", "memory", "ephemeral-storage")]
    assert rows == [CPU_ROW, MEMORY_ROW, EPHEMERAL_STORAGE_ROW]
