"""What ``trio-sched top`` shows: the summary, the causes, the pods that wait, and the nodes by pool, on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from trio_sched.go.text import printable
from trio_sched.live_page.reader import LiveReader, Row
from trio_sched.objects.amounts.amount_text import amount_text
from trio_sched.simulator.printers.ages import human_duration

_QUEUES: Final = ("active", "backoff", "unschedulable", "gated", "on permit", "binding", "gang")
_BAR: Final = 10
_FULL, _NEARLY_FULL = 950, 800
"""Permille from which on a share is marked."""
_FIXED_LINES: Final = 13
"""Lines of the summary, and the titles and heads of three tables."""
_SHARD_LINES: Final = 2


def screen(reader: LiveReader, height: int, problem: str = "") -> RenderableType:
    """Everything in *height* lines; *problem* says why it is not up to date, if it is not."""
    room = max(height - _FIXED_LINES - (_SHARD_LINES if "shards" in reader.summary else 0), 6)
    pools = min(_pool_count(reader), max(room // 3, 2))
    causes = min(len([one for one in reader.causes if one["count"]]), max(room // 3, 2))
    parts: list[RenderableType] = [*_summary(reader, problem), _pools(reader, pools), _causes(reader, causes)]
    return Group(*parts, _pending(reader, max(room - pools - causes, 2)))


def _summary(reader: LiveReader, problem: str) -> Iterable[Text]:
    summary, source = reader.summary, reader.names["source"]
    nodes = f"{summary['nodes']} nodes"
    for name, shown in (("nodes_not_ready", "not ready"), ("nodes_cordoned", "cordoned")):
        nodes += f", {summary[name]} {shown}" if summary[name] else ""
    cpu, memory, pods = summary["cpu"], summary["memory"], summary["pods"]
    yield Text.assemble((f"{source['kind']} {_safe(source['name'])}", "bold"), "  ", nodes, style="")
    yield Text(
        f"cpu {_part('cpu', cpu)}  memory {_part('memory', memory)}  pods {pods[0]}/{pods[1]}",
        overflow="ellipsis",
        no_wrap=True,
    )
    waiting = "  ".join(f"{name} {count}" for name, count in zip(_QUEUES, summary["queues"], strict=True) if count)
    where = " in this replica" if "shards" in summary else ""
    yield Text(f"pending{where}: {waiting or 'none'}", no_wrap=True, overflow="ellipsis")
    p50, p99 = (_seconds(summary[name]) for name in ("bind_p50", "bind_p99"))
    yield Text(f"{_rate(summary['binds_per_second'])} binds/s  to bind p50 {p50} p99 {p99}", no_wrap=True)
    if "shards" in summary:
        yield from _shards(summary["shards"], summary["shard_work"])
    yield _process(reader, problem)


def _shards(shards: dict[str, Any], work: dict[str, Any]) -> Iterable[Text]:
    """What this replica holds, and what waits by shard."""
    held = _numbers(shards["ready"])
    for name, shown in (("taking_over", "being taken over"), ("giving_back", "being given back")):
        held += f" ({_numbers(shards[name])} {shown})" if shards[name] else ""
    amounts = f"{work['nodes']} nodes, {work['pods']} pods"
    replicas = f"one of {shards['replicas']} replicas"
    yield _line(f"shards {held} of {shards['count']}, {replicas}: {amounts}")
    pending = "  ".join(f"{shard}: {count}" for shard, count in work["pending"]) or "none"
    yield _line(f"nominated to others {work['nominated']}  of others, waiting here {work['asked']}  by shard {pending}")


def _numbers(shards: list[int]) -> str:
    return ", ".join(map(str, shards)) or "none"


def _process(reader: LiveReader, problem: str) -> Text:
    summary = reader.summary
    line = Text(no_wrap=True, overflow="ellipsis")
    leader, configuration = summary["leader"], summary["configuration"]
    if leader is not None and not ("shards" in summary and leader["is_self"]):  # all replicas hold the lease together
        line.append(f"leader {_safe(leader['name'])}{'' if leader['is_self'] else ' (another one)'}  ")
    if configuration is not None:
        line.append(f"configuration {_safe(configuration['name'])}")
        if configuration["error"]:
            line.append(f" (not reloaded: {_safe(configuration['error'])})", style="red")
    for watch in summary["watches"] or ():
        if watch["state"] != "fresh":
            line.append(f"  {_safe(watch['kind'])} {watch['state']} for {human_duration(watch['age'])}", style="red")
    if problem:
        line.append(f"  {_safe(problem)}", style="red")
    return line


def _pool_count(reader: LiveReader) -> int:
    return len({(row["zone"], row["pool"]) for row in reader.nodes.values()})


def _pools(reader: LiveReader, most: int) -> Table:
    """Nodes by zone and pool, those that are fullest first; shares are the means of their nodes."""
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in reader.nodes.values():
        groups.setdefault((row["zone"], row["pool"]), []).append(row)
    table = Table("zone", "pool", box=None, pad_edge=False)
    for name in ("nodes", "cpu", "memory", "pods"):
        table.add_column(name, justify="right" if name == "nodes" else "left", no_wrap=True)
    shares = [
        (key, rows, [_mean(rows, "cpu"), _mean(rows, "memory"), _pod_share(rows)]) for key, rows in groups.items()
    ]
    for (zone, pool), rows, values in sorted(shares, key=lambda one: max(one[2]), reverse=True)[:most]:
        names = _safe(reader.names["zones"][zone]) or "-", _safe(reader.names["pools"][pool]) or "-"
        table.add_row(*names, str(len(rows)), *map(_bar, values))
    return table


def _causes(reader: LiveReader, most: int) -> Table:
    table = Table("pods", "cause", "plugins", box=None, pad_edge=False)
    counted = sorted((one for one in reader.causes if one["count"]), key=lambda one: -one["count"])
    for one in counted[:most]:
        plugins = ", ".join(map(_safe, one["plugins"]))
        table.add_row(str(one["count"]), _line(one["text"], "yellow"), _line(plugins))
    return table


def _pending(reader: LiveReader, most: int) -> Table:
    """Pods of highest priority and then the oldest."""
    table = Table("pod", "queue", "priority", "age", "attempts", "cause", box=None, pad_edge=False)
    rows = sorted(reader.pending.values(), key=lambda row: (-row["priority"], row["since"]))
    for row in rows[:most]:
        cause = "" if row["cause"] is None else reader.causes[row["cause"]]["text"]
        name = _line(f"{row['namespace']}/{row['name']}")
        waited = human_duration(reader.time - row["since"])
        table.add_row(
            name, _QUEUES[row["queue"]], str(row["priority"]), waited, str(row["attempts"]), _line(cause, "yellow")
        )
    return table


def _mean(rows: list[Row], column: str) -> float:
    total: float = sum(row[column] for row in rows)
    return total / len(rows)


def _pod_share(rows: list[Row]) -> float:
    pods: int = sum(row["pods"] for row in rows)
    limit: int = sum(row["pod_limit"] for row in rows)
    return 1000 * pods / max(limit, 1)


def _bar(permille: float) -> Text:
    filled = min(round(permille / 1000 * _BAR), _BAR)
    style = "red" if permille >= _FULL else "yellow" if permille >= _NEARLY_FULL else "green"
    return Text.assemble(("█" * filled, style), "░" * (_BAR - filled), f" {permille / 10:3.0f}%")


def _part(resource: str, amounts: list[int]) -> str:
    used, total = amounts
    percent = f" ({100 * used / total:.0f}%)" if total else ""
    return f"{amount_text(resource, used)}/{amount_text(resource, total)}{percent}"


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f}ms" if seconds < 1 else f"{seconds:.1f}s"


def _rate(per_second: float | None) -> str:
    return "-" if per_second is None else f"{per_second:.1f}"


def _line(text: str, style: str = "") -> Text:
    return Text(_safe(text), style=style, no_wrap=True, overflow="ellipsis")


def _safe(text: Any) -> str:
    return printable(str(text))
