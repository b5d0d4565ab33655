import pytest
from msgspec import structs

from trio_sched.objects.storage.volume import ImageVolumeSource, Volume
from trio_sched.testing import FakeHandle, container, make_plugin, node, pod, schedule

IMAGES = "ImageLocality"
MB = 1024 * 1024


def scores(waiting: object, *nodes: object) -> dict[str, int]:
    return dict(schedule(waiting, on=nodes, plugins=[IMAGES]).raw_scores[IMAGES])  # type: ignore[arg-type]


def test_an_image_counts_by_its_size_and_by_how_widely_it_is_spread() -> None:
    nodes = [node(f"n{i}", images={"app:1": 300 * MB} if i < 3 else None) for i in range(10)]
    found = scores(pod(image="app:1"), *nodes)
    assert found == {f"n{i}": 6 if i < 3 else 0 for i in range(10)}


def test_several_containers_share_a_higher_ceiling() -> None:
    both = pod(containers=[container("a", image="a:1"), container("b", image="b:1")])
    nodes = [node(f"n{i}", images={"a:1": 300 * MB, "b:1": 500 * MB}) for i in range(4)]
    assert set(scores(both, *nodes).values()) == {39}


@pytest.mark.parametrize(
    ("size", "expected"), [(23 * MB, 0), (22 * MB, 0), (1000 * MB, 100), (5000 * MB, 100), (33 * MB, 1)]
)
def test_small_images_do_not_matter_and_huge_ones_not_more_than_big_ones(size: int, expected: int) -> None:
    assert scores(pod(image="a:1"), node("n", images={"a:1": size})) == {"n": expected}


@pytest.mark.parametrize(
    ("asked", "reported", "found"),
    [
        ("app", "app:latest", True),
        ("host:5000/app", "host:5000/app:latest", True),
        ("host:5000/app:2", "host:5000/app:2", True),
        ("app@sha256:abc", "app@sha256:abc", True),
        ("app:1", "docker.io/library/app:1", False),
    ],
)
def test_a_name_without_tag_means_latest(asked: str, reported: str, found: bool) -> None:
    assert (scores(pod(image=asked), node("n", images={reported: 1000 * MB}))["n"] == 100) is found


def test_init_containers_count_and_image_volumes_add_without_raising_the_ceiling() -> None:
    waiting = pod(image="a:1", init_containers=[container(image="b:1")])
    assert scores(waiting, node("n", images={"b:1": 1000 * MB})) == {"n": 100 * (1000 - 23) // (2000 - 23)}
    volume = Volume(name="v", image=ImageVolumeSource(reference="data:1"))
    with_volume = structs.replace(waiting, spec=structs.replace(pod(image="a:1").spec, volumes=(volume,)))
    assert scores(with_volume, node("n", images={"data:1": 1000 * MB})) == {"n": 100}


def test_pods_with_the_same_images_have_one_signature() -> None:
    sign = make_plugin(IMAGES).sign
    assert sign(pod("a", image="x")) == sign(pod("b", image="x:latest", cpu="1"))
    assert sign(pod(image="x:1")) != sign(pod(image="x:2"))


@pytest.mark.parametrize(("version", "expected"), [((1, 36), 100), ((1, 37), 49)])
def test_image_volumes_raise_the_ceiling_since_1_37(version: tuple[int, int], expected: int) -> None:
    plain = pod(image="a:1")
    volume = Volume(name="data", image=ImageVolumeSource(reference="data:1"))
    waiting = structs.replace(plain, spec=structs.replace(plain.spec, volumes=(volume,)))
    there = node("n", images={"data:1": 1000 * MB})
    outcome = schedule(waiting, on=[there], plugins=[IMAGES], handle=FakeHandle(emulated_version=version))
    assert dict(outcome.raw_scores[IMAGES]) == {"n": expected}
