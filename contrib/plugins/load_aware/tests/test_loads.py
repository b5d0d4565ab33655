from trio_sched_load_aware.loads import Placed, RecentPods, SignalLoads


def test_a_peak_counts_at_once_and_is_forgotten_by_halves() -> None:
    loads = SignalLoads(max_age=1000.0, half_life=60.0)
    loads.add({"a": 0.2}, 0.0)
    loads.add({"a": 0.9}, 10.0)
    assert loads.shown() == {"a": 0.9}
    loads.add({"a": 0.1}, 70.0)
    assert loads.shown() == {"a": 0.5}
    loads.add({"a": 0.1}, 130.0)
    assert loads.shown() == {"a": 0.3}


def test_without_half_life_every_sample_counts_as_it_is() -> None:
    loads = SignalLoads(max_age=1000.0, half_life=0.0)
    loads.add({"a": 0.9}, 0.0)
    loads.add({"a": 0.126}, 1.0)
    assert loads.shown() == {"a": 0.13}


def test_old_samples_and_nodes_that_are_gone_are_dropped() -> None:
    loads = SignalLoads(max_age=100.0, half_life=0.0)
    loads.add({"a": 0.1, "b": 0.1, "gone": 0.1}, 0.0)
    loads.add({"b": 0.2}, 50.0)
    loads.forget(101.0, {"a", "b"})
    assert loads.shown() == {"b": 0.2}
    assert loads.newest == 50.0
    loads.forget(151.0, {"a", "b"})
    assert loads.newest is None


def test_the_request_of_a_new_pod_counts_until_samples_show_it() -> None:
    recent = RecentPods(warm_up=100.0)
    recent.add("u", Placed("a", 10.0, 1000, 4000))
    assert recent.on("a", ["u"]) == (1000.0, 4000.0)
    assert recent.on("a", ["other"]) == (0.0, 0.0)
    assert recent.on("b", ["u"]) == (0.0, 0.0)
    assert recent.advance(60.0, 60.0)
    assert recent.on("a", ["u"]) == (500.0, 2000.0)
    assert not recent.advance(50.0, 61.0)
    assert recent.advance(110.0, 110.0)
    assert not recent
    assert not recent.nodes()


def test_it_does_not_count_for_ever_without_samples() -> None:
    recent = RecentPods(warm_up=100.0)
    recent.add("u", Placed("a", 0.0, 1000, 0))
    assert not recent.advance(float("-inf"), 200.0)
    assert recent.advance(float("-inf"), 201.0)
    assert not recent
