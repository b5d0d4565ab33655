"""Which rows have which image, and its size; `image_holders` in ``node_columns.py`` counts them for plugins."""

from collections.abc import Iterable, Sequence

from trio_sched.objects.node import ContainerImage


class _ImageState:
    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: dict[int, None] = {}


class ImageIndex:
    """Image name → size and rows.

    The size is the one reported by the first node that had the image, kept until no node has it (as kube-scheduler
    does).
    """

    __slots__ = ("_images",)

    def __init__(self) -> None:
        self._images: dict[str, _ImageState] = {}

    def get(self, name: str) -> tuple[int, Sequence[int]]:
        """Size in bytes of *name*, and the rows of the nodes that have it."""
        state = self._images.get(name)
        return (state.size, tuple(state.rows)) if state is not None else (0, ())

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """The node at *row* has *images*."""
        for image in images:
            for name in image.names or ():
                state = self._images.get(name)
                if state is None:
                    state = self._images[name] = _ImageState(image.size_bytes)
                state.rows[row] = None

    def remove(self, row: int, names: Iterable[str]) -> None:
        """The node at *row* has the images called *names* no longer."""
        for name in names:
            state = self._images.get(name)
            if state is not None:
                state.rows.pop(row, None)
                if not state.rows:
                    del self._images[name]
