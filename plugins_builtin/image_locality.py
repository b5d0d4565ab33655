"""ImageLocality: prefers nodes that have the images of the pod."""

from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import CycleState, Handle, Input, Int64Array, NodeColumns, Pod, hookimpl
from trio_sched.plugin_api.behaviour import Behaviour

MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * MIB
"""Images smaller than this are pulled so fast that they do not count."""
_MAX_CONTAINER_THRESHOLD = 1000 * MIB


class ImageLocality:
    """Scores nodes by the size of the pod's images on them, weighted by the share of nodes that have each image."""

    name: ClassVar[str] = "ImageLocality"
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE, Input.ALL_NODES})

    def __init__(self, args: None, handle: Handle) -> None:
        raises_threshold = Behaviour.of(handle).image_volumes_raise_threshold
        self._image_count = _containers_and_image_volumes if raises_threshold else _container_count

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """0..100; images on few nodes count less, so that these nodes do not get all pods that use them."""
        total = nodes.total_nodes
        sums = np.zeros(len(nodes), dtype=np.int64)
        for image in _images(pod):
            size, count, positions = nodes.image_holders(image)
            if len(positions):
                sums[positions] += int(float(size) * (float(count) / float(total)))
        if not sums.any():
            return sums
        max_threshold = _MAX_CONTAINER_THRESHOLD * self._image_count(pod)
        return 100 * (np.clip(sums, _MIN_THRESHOLD, max_threshold) - _MIN_THRESHOLD) // (max_threshold - _MIN_THRESHOLD)

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        """The images, and the number by which the maximum grows."""
        return tuple(_images(pod)), self._image_count(pod)


def _container_count(pod: Pod) -> int:
    return len(pod.spec.init_containers or ()) + len(pod.spec.containers or ())


def _containers_and_image_volumes(pod: Pod) -> int:
    return _container_count(pod) + sum(volume.image is not None for volume in pod.spec.volumes or ())


def _images(pod: Pod) -> Iterable[str]:
    for container in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        yield _with_tag(container.image)
    for volume in pod.spec.volumes or ():
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    """Nodes report images with tags; one without means ``latest`` (a colon before the last slash is a port)."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
