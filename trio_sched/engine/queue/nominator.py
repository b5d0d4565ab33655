"""Which pods are nominated to which node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trio_sched.objects.pod import Pod


class Nominator:
    """Node name → pods nominated there, in the order of their nomination; a pod is nominated to one node at most."""

    def __init__(self, get_unassigned_pod: Callable[[str], Pod | None]) -> None:
        self._known_pod = get_unassigned_pod
        """Looks a pod up by ``namespace/name`` among those that exist."""
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self._changed: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Pod]]:
        """Node name → UID → the pod as it was when it was nominated."""
        return self._by_node

    def node_of(self, uid: str) -> str | None:
        """Where the pod *uid* is nominated."""
        return self._node_of.get(uid)

    def node_name(self, pod: Pod) -> str:
        """Where *pod* is nominated; "" if nowhere. The status of a pod shows a nomination later than the nominator."""
        known = self._node_of.get(pod.metadata.uid)
        return pod.status.nominated_node_name if known is None else known

    def take_changed(self) -> set[str]:
        """The nodes with other nominations, or other versions of nominated pods, than when this was called last."""
        changed, self._changed = self._changed, set()
        return changed

    def note_change(self, uid: str) -> None:
        """Another version of the pod *uid* counts, if it is nominated."""
        node_name = self._node_of.get(uid)
        if node_name is not None:
            self._changed.add(node_name)

    def add(self, pod: Pod, node_name: str | None) -> None:
        """Nominate *pod* to *node_name* (which may be empty), or with None to the node that its status names.

        A pod that no longer exists, or that has a node already, is not nominated.
        """
        self.delete(pod.uid)
        if node_name is None:
            node_name = pod.nominated_node_name
            if not node_name:
                return
        known = self._known_pod(pod.key)
        if known is None or known.node_name:
            return
        self._put(pod, node_name)

    def add_of_other_process(self, pod: Pod, node_name: str) -> None:
        """Nominate *pod*, which exists, and which another process decides on, to *node_name*."""
        self.delete(pod.uid)
        self._put(pod, node_name)

    def _put(self, pod: Pod, node_name: str) -> None:
        self._by_node.setdefault(node_name, {})[pod.uid] = pod
        self._node_of[pod.uid] = node_name
        self._changed.add(node_name)

    def delete(self, uid: str) -> str | None:
        """The pod *uid* is not nominated any more; returns where it was."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            self._changed.add(node_name)
            pods = self._by_node[node_name]
            del pods[uid]
            if not pods:
                del self._by_node[node_name]
        return node_name

    def update(self, old: Pod | None, new: Pod) -> None:
        """*old* has become *new*; a nomination that only this process knows of stays."""
        keep = None
        if (old is None or not old.nominated_node_name) and not new.nominated_node_name:
            keep = self._node_of.get(new.uid if old is None else old.uid)
        self.delete(new.uid if old is None else old.uid)
        self.add(new, keep)
