from trio_sched.objects.node import ContainerImage
from trio_sched.snapshot.image_index import ImageIndex


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def test_an_image_is_found_under_all_its_names() -> None:
    index = ImageIndex()
    index.add(3, [image(5, "a:1", "a@sha256:x")])
    assert index.get("a:1") == index.get("a@sha256:x") == (5, (3,))
    assert index.get("b:1") == (0, ())


def test_the_size_is_the_first_one_reported_until_no_node_has_the_image() -> None:
    index = ImageIndex()
    index.add(1, [image(5, "a:1")])
    index.add(2, [image(9, "a:1")])
    index.remove(1, ["a:1"])
    assert index.get("a:1") == (5, (2,))
    index.remove(2, ["a:1", "never-there:1"])
    index.add(1, [image(9, "a:1")])
    assert index.get("a:1") == (9, (1,))


def test_an_image_without_names_is_no_matter() -> None:
    index = ImageIndex()
    index.add(1, [ContainerImage(size_bytes=5)])
    assert index.get("") == (0, ())
