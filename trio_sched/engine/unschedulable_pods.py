"""Pods that wait for an event, indexed by the plugins that rejected them: most events concern few of them."""

from __future__ import annotations

from collections.abc import Iterable, ValuesView

from trio_sched.engine.queued_pod import QueuedPodInfo


class UnschedulablePods:
    """``namespace/name`` → pod, with an index by rejecting plugin."""

    __slots__ = ("_by_plugin", "_plugins_of", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._plugins_of: dict[str, frozenset[str]] = {}
        self._by_plugin: dict[str, dict[str, QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod called *key*, if it is here."""
        return self._pods.get(key)

    def values(self) -> ValuesView[QueuedPodInfo]:
        """All of them."""
        return self._pods.values()

    def put(self, info: QueuedPodInfo) -> None:
        """Put *info* in, or take note that its rejectors have changed."""
        key = info.key
        self.remove(key)
        self._pods[key] = info
        self._plugins_of[key] = plugins = frozenset(info.rejectors)
        for plugin in plugins:
            self._by_plugin.setdefault(plugin, {})[key] = info

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod called *key* out, if it is here."""
        info = self._pods.pop(key, None)
        if info is not None:
            for plugin in self._plugins_of.pop(key):
                pods = self._by_plugin[plugin]
                del pods[key]
                if not pods:
                    del self._by_plugin[plugin]
        return info

    def rejected_by(self, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """The pods that one of *plugins* rejected; each once."""
        found: dict[str, QueuedPodInfo] = {}
        for plugin in plugins:
            found.update(self._by_plugin.get(plugin, {}))
        return list(found.values())
