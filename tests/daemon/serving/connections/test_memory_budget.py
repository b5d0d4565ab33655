"""What connections hold together is bounded; the one that holds most pays for it."""

from attrs import define

from trio_sched.daemon.serving.connections.memory_budget import MemoryBudget

MIB = 1 << 20


@define(eq=False)
class Held:
    """Something that holds memory."""

    is_silent: bool = False
    is_dropped: bool = False

    def drop(self) -> None:
        self.is_dropped = True


def test_the_one_that_holds_most_is_ended_and_no_other() -> None:
    budget: MemoryBudget[Held] = MemoryBudget(10 * MIB)
    little, most, much = Held(), Held(), Held()
    for holder, held in ((little, 1), (most, 5), (much, 4)):
        budget.add(holder, held * MIB)
    budget.change(little, 1)
    assert [holder.is_dropped for holder in (little, most, much)] == [False, True, False]
    assert budget.held_bytes == 5 * MIB + 1


def test_of_many_that_hold_little_the_oldest_is_ended() -> None:
    budget: MemoryBudget[Held] = MemoryBudget(MIB)
    holders = [Held() for _ in range(16)]
    for holder in holders:
        budget.add(holder, 64 * 1024)
    newest = Held()
    budget.add(newest, 80 * 1024)
    assert [holder.is_dropped for holder in holders] == [True, True] + [False] * 14
    assert not newest.is_dropped


def test_silence_comes_before_age() -> None:
    budget: MemoryBudget[Held] = MemoryBudget(MIB)
    speaks, silent = Held(), Held(is_silent=True)
    budget.add(speaks, 1000)
    budget.add(silent, 1000)
    assert budget.drop_largest() is silent
    assert budget.drop_largest() is speaks
    assert budget.drop_largest() is None


def test_what_is_released_counts_no_longer_and_is_not_ended() -> None:
    budget: MemoryBudget[Held] = MemoryBudget(MIB)
    known, other = Held(), Held()
    budget.add(known, MIB // 2)
    budget.add(other, MIB // 2)
    budget.release(known)
    budget.change(known, 100 * MIB)
    budget.release(known)
    assert (known.is_dropped, other.is_dropped, budget.held_bytes) == (False, False, MIB // 2)
