import pytest
from msgspec import structs

from trio_sched.engine.cache import Cache, CacheError, with_device_claims
from trio_sched.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from trio_sched.objects.pod_requests import ResourceOptions
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import node, pod


@pytest.fixture
def cache() -> Cache:
    filled = Cache()
    for name in ("a", "b"):
        filled.add_node(node(name))
    return filled


def cpu(cache: Cache) -> dict[str, int]:
    columns = NodeColumns(cache.table)
    return dict(zip(columns.names, columns.requested[0].tolist(), strict=True))


def bound(waiting: Pod, node_name: str) -> Pod:
    return structs.replace(waiting, spec=structs.replace(waiting.spec, node_name=node_name))


WAITING = pod("p", cpu="1")


def test_a_pod_without_a_node_is_in_its_group_until_it_is_gone_and_unassigned_until_it_has_a_node(cache: Cache) -> None:
    first, second = pod("first", group="g"), pod("second", group="g")
    cache.put_unassigned(first)
    cache.put_unassigned(second)
    cache.add(bound(first, "a"))
    assert cache.unassigned.pods() == [second]
    group = cache.groups.get("default/g")
    assert group is not None
    assert (list(group.unscheduled), list(group.assigned)) == ([second.uid], [first.uid])
    cache.drop_unassigned(second)
    cache.remove(first.uid)
    assert (len(cache.unassigned), len(cache.groups)) == (0, 0)


def test_an_assumed_pod_counts_at_once_and_not_twice_when_confirmed(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    assert (cpu(cache), cache.is_assumed(WAITING.uid), cache.assumed_count) == ({"a": 1000, "b": 0}, True, 1)
    position = cache.table.pods_log.position
    cache.add(bound(WAITING, "a"))
    assert (cpu(cache), cache.is_assumed(WAITING.uid), cache.assumed_count) == ({"a": 1000, "b": 0}, False, 0)
    assert cache.table.pods_log.position == position  # nothing changed, so no snapshot is refreshed
    known = cache.get(WAITING.uid)
    assert known is not None
    assert known.pod.node_name == "a"


def test_a_pod_counts_with_what_its_devices_take() -> None:
    cache = Cache(ResourceOptions(device_claims=True))
    cache.add_node(node("a"))
    two = (NodeAllocatableResourceClaimStatus("c", ("main",), {"cpu": "2"}),)
    charged = with_device_claims(WAITING, two)
    assert with_device_claims(charged, two) is charged
    cache.assume(charged, "a")
    assert cpu(cache) == {"a": 3000}
    cache.add(bound(charged, "a"))
    assert cpu(cache) == {"a": 3000}
    cache.update(bound(with_device_claims(charged, None), "a"))
    assert cpu(cache) == {"a": 1000}


def test_a_forgotten_pod_frees_its_resources(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    assert cache.forget(WAITING.uid)
    assert (cpu(cache), len(cache)) == ({"a": 0, "b": 0}, 0)
    assert not cache.forget(WAITING.uid)


def test_a_pod_confirmed_on_another_node_counts_there(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    cache.add(bound(WAITING, "b"))
    assert cpu(cache) == {"a": 0, "b": 1000}


def test_a_pod_confirmed_with_other_requests_counts_with_its_new_ones(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    cache.add(pod("p", cpu="3", node_name="a"))
    assert cpu(cache) == {"a": 3000, "b": 0}


def test_invalid_transitions_change_nothing(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    with pytest.raises(CacheError, match=r"pod uid-of-default/p\(default/p\) is in the cache, so can't be assumed"):
        cache.assume(WAITING, "b")
    with pytest.raises(CacheError, match=r"assumed pod .* should not be updated"):
        cache.update(bound(WAITING, "a"))
    cache.add(bound(WAITING, "a"))
    with pytest.raises(CacheError, match="wasn't assumed so cannot be forgotten"):
        cache.forget(WAITING.uid)
    with pytest.raises(CacheError, match="was already in added state"):
        cache.add(bound(WAITING, "a"))
    with pytest.raises(CacheError, match="is not added to scheduler cache, so cannot be updated"):
        cache.update(pod("q", node_name="a"))
    with pytest.raises(CacheError, match="pod nobody is not found in scheduler cache, so cannot be removed from it"):
        cache.remove("nobody")
    with pytest.raises(CacheError, match="node c is not found"):
        cache.remove_node("c")
    assert cpu(cache) == {"a": 1000, "b": 0}


def test_an_update_with_the_same_requests_changes_no_column(cache: Cache) -> None:
    cache.add(bound(WAITING, "a"))
    position = cache.table.pods_log.position
    labelled = pod("p", cpu="1", node_name="a", labels={"new": "yes"})
    cache.update(labelled)
    respelled = pod("p", cpu="1000m", node_name="a")
    cache.update(respelled)
    assert cache.table.pods_log.position == position
    assert NodeColumns(cache.table).node(0).pods == [respelled]
    cache.update(pod("p", cpu="2", node_name="a"))
    assert cpu(cache)["a"] == 2000


def test_a_removed_pod_is_returned_as_it_was_cached(cache: Cache) -> None:
    cache.add(bound(WAITING, "a"))
    assert cache.remove(WAITING.uid) == bound(WAITING, "a")
    assert cpu(cache)["a"] == 0


def test_a_deleted_assumed_pod_leaves_the_cache(cache: Cache) -> None:
    cache.assume(WAITING, "a")
    assert cache.remove(WAITING.uid) is WAITING
    assert (len(cache), cpu(cache)["a"]) == (0, 0)


def test_pods_of_the_same_name_are_told_apart_by_uid(cache: Cache) -> None:
    cache.add(pod("p", uid="1", cpu="1", node_name="a"))
    cache.add(pod("p", uid="2", cpu="1", node_name="a"))
    cache.remove("1")
    assert [each.pod.uid for each in cache] == ["2"]
    assert cpu(cache)["a"] == 1000


def test_pods_added_before_their_node_count_once_it_is_added(cache: Cache) -> None:
    cache.add(pod("early", cpu="1", node_name="c"))
    cache.assume(pod("bold", cpu="1"), "c")
    cache.add(pod("gone", cpu="1", node_name="c"))
    cache.remove(pod("gone").uid)
    cache.add_node(node("c"))
    assert cpu(cache)["c"] == 2000


def test_pods_of_a_removed_node_stay_cached_until_they_are_deleted(cache: Cache) -> None:
    cache.add(bound(WAITING, "a"))
    cache.add(pod("q", cpu="2", node_name="a"))
    cache.remove_node("a")
    assert len(cache) == 2
    cache.remove(pod("q").uid)
    cache.update(pod("p", cpu="1500m", node_name="a"))
    cache.add_node(node("a"))
    assert cpu(cache)["a"] == 1500


def test_pod_on_node_names_the_chosen_node_until_the_pod_is_confirmed(cache: Cache) -> None:
    cache.assume(WAITING, "b")
    known = cache.get(WAITING.uid)
    assert known is not None
    assert (known.pod.node_name, known.pod_on_node.node_name) == ("", "b")
    cache.add(bound(WAITING, "b"))
    assert known.pod_on_node is known.pod


def test_adding_a_known_node_is_an_update(cache: Cache) -> None:
    cache.add(bound(WAITING, "a"))
    cache.add_node(node("a", cpu="64"))
    assert NodeColumns(cache.table).allocatable[0].tolist() == [64000, 4000]
    assert cpu(cache)["a"] == 1000


def test_the_pods_on_nodes_are_told_in_their_order_and_which_of_them_are_assumed(cache: Cache) -> None:
    for number in range(4):
        cache.assume(pod(f"p{number}", uid=f"u{number}"), "a")
    cache.add(pod("p2", uid="u2", node_name="a"))
    assert list(cache.uids()) == ["u0", "u1", "u2", "u3"]
    assert cache.assumed_uids() == {"u0", "u1", "u3"}
    cache.forget("u0")
    assert cache.assumed_uids() == {"u1", "u3"}
    assert Cache().assumed_uids() == set()
