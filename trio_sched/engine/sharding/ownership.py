"""Which shard nodes and pods belong to, and how many shards a replica takes.

Whoever holds a shard binds pods to its nodes, and nobody else does: a node has one owner at a time.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

LANE: Final = 0
"""The shard whose holder also decides for pods whose constraints reach beyond a node, on the nodes of all shards."""
_MAX_KNOWN: Final = 1 << 14
"""So many names are kept with their shards; finding one out takes a microsecond."""
_WORD: Final = (1 << 64) - 1


@lru_cache(_MAX_KNOWN)
def shard_of(name: str, shards: int) -> int:
    """The shard, from 0 to *shards* - 1, of a node, or of the owner of pods.

    Jump consistent hashing (Lamping and Veach, 2014): with one shard more, only what that one gets moves, and the work
    grows with the logarithm of their number.
    """
    state = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
    shard = following = 0
    while following < shards:
        shard = following
        state = (state * 2862933555777941757 + 1) & _WORD
        following = ((shard + 1) << 31) // ((state >> 33) + 1)
    return shard


def shard_of_value(value: str, shards: int) -> int:
    """The shard that the *value* of a label stands for: a number that is one names it, anything else is hashed."""
    is_short = len(value) < 4 and value.isascii() and value.isdecimal()
    return int(value) if is_short and int(value) < shards else shard_of(value, shards)


def fair_share(shards: int, replicas: int) -> int:
    """How many of *shards* a replica holds at most where there are so many *replicas*; at least one."""
    return max(-(-shards // max(replicas, 1)), 1)


def shard_lease(lease: str, shard: int, shards: int) -> str:
    """The name of the lease of a shard, where leader election would use *lease*."""
    return f"{lease}-shard-{shard}-of-{shards}"
