"""What is counted where replicas share the work."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen(kw_only=True)
class ShardCounts:
    """At one moment, in one process."""

    ready: Mapping[int, bool]
    """The shards that it holds, and whether it decides for them already."""
    pending: Mapping[int, int]
    """Pods in its queue, by the shard that decides on them."""
    proposals: Mapping[str, int]
    """How often others were asked to bind a pod, by what came of it."""
    refused: int
    """How often it refused to bind a pod of others."""
    fenced: int
    """Pods that were given another version when a shard was taken."""
