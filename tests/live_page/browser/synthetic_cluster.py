"""A made-up scheduler as the live page's protocol tells of it: columns of nodes and pending pods, and what changes."""

import random
from typing import Any, Final

from attrs import define, field

Message = dict[str, Any]
Columns = dict[str, list[Any]]

HOSTILE: Final = '<img src=x onerror="document.title=1">\u202e{{7*7}}'
"""A name that is markup, turns the direction of writing, and is a template."""
CAUSES: Final = (
    ("Insufficient memory", "NodeResourcesFit", 60),
    ("node(s) had untolerated taint {dedicated: training}", "TaintToleration", 22),
    ("node(s) didn't match Pod's node affinity/selector", "NodeAffinity", 11),
    (f"node(s) didn't satisfy {HOSTILE}", "PodTopologySpread", 7),
)
"""Texts, plugins, and how many of a hundred pods have each."""
_POOLS: Final = ("general", "memory", "gpu")
_ZONES: Final = ("zone-a", "zone-b", "zone-c")
_POD_LIMIT: Final = 110
_DEVICES: Final = "nvidia.com/gpu"
_ATTEMPTS: Final = ("scheduled", "unschedulable", "error")
_BEGIN: Final = 1_790_000_000.0
_MOST_ROWS: Final = 2000


@define(eq=False)
class SyntheticCluster:
    """So many *nodes* and *pods*, of which *pending* wait; *rate* pods per second are bound and as many end."""

    node_count: int
    pod_count: int
    pending_count: int
    rate: float = 0.0
    has_trouble: bool = True
    shards: int = 0
    """Two replicas share the work, and this one has every second shard; 0: nothing is shared."""
    time: float = _BEGIN
    sequence: int = 1
    nodes: Columns = field(init=False)
    pending: dict[int, Message] = field(factory=dict, init=False)
    _random: random.Random = field(factory=lambda: random.Random(7), init=False)
    _last_id: int = field(default=0, init=False)
    _owed: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        rows = range(self.node_count)
        pools = [2 if row % 9 == 8 else row % 5 // 4 for row in rows]
        fills = [self._random.betavariate(5, 3) * (1.25 if pool else 1) for pool in pools]
        mean = self.pod_count / max(self.node_count, 1)
        self.nodes = {
            "id": list(rows),
            "name": [f"node-{_POOLS[pool]}-{row:05d}" for row, pool in zip(rows, pools, strict=True)],
            "zone": [row * 3 // max(self.node_count, 1) for row in rows],
            "pool": pools,
            "flags": [self._flags(row) for row in rows],
            "cpu": [min(1000, round(1000 * fill)) for fill in fills],
            "memory": [min(1040, round(900 * fill * self._random.uniform(0.7, 1.3))) for fill in fills],
            "pods": [min(_POD_LIMIT, round(mean * self._random.uniform(0.5, 1.5))) for _ in rows],
            "pod_limit": [_POD_LIMIT for _ in rows],
            "device_0": [self._random.choice((500, 750, 1000, 1000)) if pool == 2 else None for pool in pools],
        }
        if self.shards:
            self.nodes["shard"] = [row % self.shards for row in rows]
        for _ in range(self.pending_count):
            self._add_pending()

    def snapshot(self) -> Message:
        return {
            "version": 1,
            "sequence": self.sequence,
            "time": self.time,
            "source": {"kind": "scheduler", "name": f"prod-eu {HOSTILE[:12]}"},
            "zones": list(_ZONES),
            "pools": list(_POOLS),
            "devices": [_DEVICES],
            "nodes": self.nodes,
            "pending": _columns(list(self.pending.values())[:_MOST_ROWS]),
            "causes": self._causes(),
            "summary": self._summary(),
        }

    def step(self, seconds: float) -> Message:
        """Let *seconds* pass; returns the delta."""
        self.time += seconds
        self.sequence += 1
        self._owed += self.rate * seconds
        changed: dict[str, dict[int, int]] = {"cpu": {}, "memory": {}, "pods": {}}
        removed, added = [], []
        while self._owed >= 1 and self.node_count:
            self._owed -= 1
            for pods in (1, -1):  # one is bound, another one ends
                row = self._random.randrange(self.node_count)
                for name, step, most in (
                    ("pods", pods, _POD_LIMIT),
                    ("cpu", 8 * pods, 1000),
                    ("memory", 8 * pods, 1040),
                ):
                    self.nodes[name][row] = changed[name][row] = min(max(self.nodes[name][row] + step, 0), most)
            if len(self.pending) > self.pending_count // 2 and self._owed % 8 < 1:
                removed.append(self._remove_pending())
                added.append(self._add_pending())
        delta: Message = {
            "sequence": self.sequence,
            "time": self.time,
            "summary": {key: value for key, value in self._summary().items() if key in _LIVE},
        }
        lists = {name: [list(values), list(values.values())] for name, values in changed.items() if values}
        if lists:
            delta["nodes"] = {"changed": lists}
        if added:
            delta["pending"] = {"added": _columns(added), "removed": removed}
            delta["causes"] = self._causes()
        return delta

    def node(self, name: str) -> Message | None:
        """The answer about one node."""
        if name not in self.nodes["name"]:
            return None
        pods = self.nodes["pods"][self.nodes["name"].index(name)]
        return {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "note": HOSTILE},
            "taints": ["dedicated=training:NoSchedule"],
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": str(_POD_LIMIT)},
            "requested": {"cpu": "9500m", "memory": "41Gi", "pods": str(pods)},
            "pods": [
                {"namespace": "shop", "name": f"cart-{i}", "priority": 0, "cpu": "100m", "memory": "64Mi"}
                | {"since": self.time - 60 * i, "phase": "Running"}
                for i in range(pods)
            ],
        }

    def pods(self, query: str, limit: int) -> Message:
        """The pending pods whose names hold all words of *query*."""
        words = query.split()
        found = [
            pod for pod in self.pending.values() if all(word in f"{pod['namespace']}/{pod['name']}" for word in words)
        ]
        names = ("namespace", "name", "node", "queue", "priority")
        return {"pods": [{name: pod[name] for name in names} for pod in found[:limit]], "more": len(found[limit:])}

    def history(self) -> Message:
        """An hour of made-up values."""
        noise = random.Random(3)
        seconds = [self.time - 10 * (359 - i) for i in range(360)]
        waves = [1 + 0.4 * noise.random() + (i % 90) / 90 for i in range(360)]
        level = {
            "binds": self.rate / 2,
            "bind_p50": 0.008,
            "bind_p99": 0.06,
            "preemptions": 0.4,
            "unschedulable": 300.0,
        }
        level |= {f"attempts_{kind}": self.rate / 2 / 10**i for i, kind in enumerate(_ATTEMPTS)}
        level |= {"active": 12.0, "backoff": 40.0, "gated": 5.0}
        series: dict[str, list[float | None]] = {
            name: [value * wave for wave in waves] for name, value in level.items()
        }
        series["bind_p99"][100:120] = [None] * 20
        plugins = [
            {"name": name, "point": "Filter", "p50": 0.0001 * i, "p99": 0.0009 * i, "failures": i // 4}
            for i, name in enumerate(
                ("NodeResourcesFit", "InterPodAffinity", "PodTopologySpread", "VolumeBinding", HOSTILE), 1
            )
        ]
        reloads = [
            {
                "time": self.time - 1800,
                "worked": True,
                "changed": ["profile default-scheduler: weight of ImageLocality 1 → 2"],
            },
            {"time": self.time - 300, "worked": False, "changed": [f"scheduler.yaml:12: {HOSTILE} is no plugin"]},
        ]
        return {"seconds": seconds, "series": series, "plugins": plugins, "reloads": reloads}

    def _flags(self, row: int) -> int:
        if not self.has_trouble:
            return 0
        return 2 if row % 97 == 13 else 1 if row % 61 == 7 else 4 if row % 9 == 8 else 0

    def _add_pending(self) -> Message:
        self._last_id += 1
        number = self._last_id
        die = self._random.randrange(100)
        cause, most = 0, CAUSES[0][2]
        while die >= most:
            cause += 1
            most += CAUSES[cause][2]
        queue = self._random.choices((0, 1, 2, 3, 4, 5, 6), (4, 10, 74, 3, 1, 4, 4))[0]
        self.pending[number] = pod = {
            "id": number,
            "namespace": ("shop", "batch", "training")[number % 3],
            "name": f"worker-7f9c-{number:06d}" if number % 50 else f"{HOSTILE}-{number}",
            "queue": queue,
            "priority": self._random.choice((0, 0, 0, 1000, 100_000)),
            "since": self.time - self._random.expovariate(1 / 900),
            "attempts": self._random.randrange(1, 9) if queue else 0,
            "cause": cause if queue in (1, 2) else None,
            "group": "ring-7" if queue == 6 else "",
            "node": "node-general-00003" if queue == 5 else "",
        }
        return pod

    def _remove_pending(self) -> int:
        return int(self.pending.pop(next(iter(self.pending)))["id"])

    def _causes(self) -> list[Message]:
        counts = [0] * len(CAUSES)
        for pod in self.pending.values():
            if pod["cause"] is not None:
                counts[pod["cause"]] += 1
        return [
            {"id": i, "text": text, "plugins": [plugin], "count": counts[i]}
            for i, (text, plugin, _) in enumerate(CAUSES)
        ]

    def _summary(self) -> Message:
        queues = [0] * 7
        for pod in self.pending.values():
            queues[pod["queue"]] += 1
        flags = self.nodes["flags"]
        cpu, memory = 16_000 * self.node_count, self.node_count << 36
        error = "scheduler.yaml:12: no plugin is called NodeResourceFit" if self.has_trouble else ""
        return {
            "nodes": self.node_count,
            "nodes_not_ready": sum(flag == 2 for flag in flags),
            "nodes_cordoned": sum(flag == 1 for flag in flags),
            "cpu": [sum(self.nodes["cpu"]) * 16, cpu],
            "memory": [(sum(self.nodes["memory"]) << 36) // 1000, memory],
            "pods": [sum(self.nodes["pods"]), _POD_LIMIT * self.node_count],
            "queues": queues,
            "pending_left_out": max(0, len(self.pending) - _MOST_ROWS),
            "binds_per_second": float(self.rate),
            "bind_p50": 0.0084,
            "bind_p99": 0.062,
            "preemptions_per_second": 0.4 if self.has_trouble else 0.0,
            "leader": {"name": "control-plane-1_8c1f", "is_self": True, "since": _BEGIN - 86_000},
            "configuration": {"name": "/etc/trio-sched/scheduler.yaml", "loaded": _BEGIN - 300, "error": error},
            "watches": [{"kind": kind, "state": "fresh", "age": 0.2} for kind in ("Pod", "Node", "PersistentVolume")],
            "paused": False,
            **self._shared(),
        }

    def _shared(self) -> Message:
        if not self.shards:
            return {}
        ready, taken = list(range(0, self.shards, 2)), [1]
        pending = [[shard, 1 + len(self.pending) // (1 + shard)] for shard in ready]
        shards = zip(self.nodes["pods"], self.nodes["shard"], strict=True)
        own = [pods for pods, shard in shards if shard in (*ready, *taken)]
        return {
            "shards": {"count": self.shards, "replicas": 2, "ready": ready, "taking_over": taken, "giving_back": []},
            "shard_work": {"nodes": len(own), "pods": sum(own), "pending": pending, "nominated": 2, "asked": 1},
        }


_LIVE: Final = ("cpu", "memory", "pods", "queues", "pending_left_out", "binds_per_second")
"""What changes of the summary."""


def _columns(pods: list[Message]) -> Columns:
    names = ("id", "namespace", "name", "queue", "priority", "since", "attempts", "cause", "group", "node")
    return {name: [pod[name] for pod in pods] for name in names}
