from trio_sched.snapshot.vocabulary import CPU_ROW, EPHEMERAL_STORAGE_ROW, MEMORY_ROW, Interner, resource_vocabulary


def test_each_value_gets_the_next_number_once() -> None:
    interner = Interner[str | None](None)
    assert [interner.intern(value) for value in ("a", "b", "a", None)] == [1, 2, 1, 0]
    assert interner.values == [None, "a", "b"]
    assert (interner.get("b"), interner.get("c"), len(interner)) == (2, None, 3)


def test_common_resources_have_fixed_rows() -> None:
    vocabulary = resource_vocabulary()
    rows = [vocabulary.get(name) for name in ("cpu", "memory", "ephemeral-storage")]
    assert rows == [CPU_ROW, MEMORY_ROW, EPHEMERAL_STORAGE_ROW]
