"""The short form of ``make soak``: caches with a limit get a small one, so that all of them are full early."""

from importlib import import_module

import pytest

from contrib.soak.census import census
from contrib.soak.run import soak
from contrib.soak.workload import Size

SMALL_LIMITS = {
    "trio_sched.engine.evaluation.signature_cache.MAX_SIGNATURES": 10,
    "trio_sched.objects.pod_requests._MAX_KNOWN_RESOURCES": 20,
    "trio_sched.objects.sharing._MAX_VALUES": 20,
    "trio_sched.snapshot.labels.affinity_terms._MAX_PARSED": 20,
    "trio_sched.snapshot.change_log.KEPT_CHANGES": 50,
    "trio_sched.snapshot.pod_counts.domain_counts._MAX_CELLS": 4000,
    "trio_sched.snapshot.labels.label_selection._MAX_COMPILED": 20,
    "trio_sched.snapshot.pod_counts.pod_index._MAX_COUNTS": 20,
    "trio_sched.snapshot.pod_counts.term_index._MAX_MATCHES": 20,
    "trio_sched.snapshot.usage_ids._MAX_IDS": 50,
    "trio_sched.engine.evaluation.incremental_evaluation.MAX_KEPT_AMOUNTS": 20,
    "plugins_builtin.spreading.inter_pod_affinity._MAX_SELECTORS": 20,
}


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for path, limit in SMALL_LIMITS.items():
        module, _, name = path.rpartition(".")
        assert getattr(import_module(module), name) > limit
        monkeypatch.setattr(path, limit)


@pytest.mark.usefixtures("_small_limits")
def test_the_scheduler_is_as_large_as_what_exists_whatever_existed() -> None:
    report = soak(Size(waves=24, nodes_per_wave=12, pods_per_wave=40, standing_nodes=5), seed=1, samples=6)
    assert (report.pods, report.nodes, len(report.samples)) == (960, 288, 6)
    assert report.bound > 600
    assert report.grown() == {}


def test_the_census_adds_up_containers_by_the_attributes_that_lead_to_them() -> None:
    class Inner:
        __slots__ = ("rows",)

        def __init__(self, count: int) -> None:
            self.rows = list(range(count))

    class Outer:
        def __init__(self) -> None:
            self.inners = {"a": Inner(3), "b": Inner(4)}
            self.itself = self

    assert census({"root": Outer()}) == {"Outer.inners": 2, "Inner.rows": 7}
    assert census({"root": Outer()}, leave_out=[__name__]) == {}
