"""ImageLocality: a node that has the images already starts the pod sooner."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import CycleState, Handle, Input, Int64Array, NodeColumns, Pod, hookimpl

MIB = 1024 * 1024
_LEAST = 23 * MIB
"""Below this an image is pulled so fast that it does not matter."""
_MOST_PER_CONTAINER = 1000 * MIB


class ImageLocality:
    """Ranks nodes by the size of the pod's images they have, weighed by how widely each is spread."""

    name: ClassVar[str] = "ImageLocality"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.ALL_NODES})

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0..100; images on few nodes count less, so that one node does not attract everything."""
        total = nodes.total_nodes
        sums = np.zeros(len(nodes), dtype=np.int64)
        for image in _images(pod):
            size, count, positions = nodes.image_holders(image)
            if len(positions):
                sums[positions] += int(float(size) * (float(count) / float(total)))
        if not sums.any():
            return sums
        most = _MOST_PER_CONTAINER * (len(pod.spec.init_containers or ()) + len(pod.spec.containers or ()))
        return 100 * (np.clip(sums, _LEAST, most) - _LEAST) // (most - _LEAST)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The images, and how many containers share the ceiling."""
        return tuple(_images(pod)), len(pod.spec.init_containers or ()) + len(pod.spec.containers or ())


def _images(pod: Pod) -> Iterable[str]:
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        yield _with_tag(container.image)
    for volume in pod.spec.volumes or ():
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    """Nodes report images with tags; one without means ``latest`` (a colon before the last slash is a port)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
