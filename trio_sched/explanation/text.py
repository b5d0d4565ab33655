"""An explanation as text for people: the cause in the first three lines, then the evidence, then what would help.

It is written from the data that `trio_sched.explanation.data` makes, so a command can write what a server has sent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.explanation.data import count_of_nodes
from trio_sched.go.text import printable
from trio_sched.plugin_api.clauses import some_names

_FEW: Final = 3
_MAX_GROUPS: Final = 8
_MAX_TRIED: Final = 12
_INDENT: Final = "      "
_NARROWEST: Final = 40

Style = Callable[[str, str], str]
"""``style("cause", text)`` gives *text* as the terminal shows it; the names are ``title``, ``cause`` and ``good``."""


def plain(_name: str, text: str) -> str:
    """The style without colours."""
    return text


@frozen(kw_only=True)
class Layout:
    """How an explanation is written."""

    width: int = 100
    """Columns after which lines break; commands never do."""
    every_node: bool = False
    """Whether all nodes are named, not a few."""
    style: Style = plain

    def wrapped(self, text: str, *, first: str = "", rest: str = "  ", style: str = "") -> Iterator[str]:
        """*text* in lines that begin with *first*, then with *rest*."""
        lines = textwrap.wrap(
            text,
            max(self.width, _NARROWEST),
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines or [first]:
            yield self.style(style, line) if style else line


def explanation_text(data: Json, layout: Layout | None = None) -> str:
    """*data* of one explanation as lines of text; control characters in it are escaped."""
    return "\n".join(_lines(_printable(data), layout or Layout())) + "\n"


def _printable(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _printable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_printable(value) for value in data]
    return printable(data) if isinstance(data, str) else data


def _lines(data: Json, layout: Layout) -> Iterator[str]:
    yield layout.style("title", _headline(data, layout.width))
    if data["cause"] is not None:
        yield from layout.wrapped(f"Cause: {data['cause']['text']}", style="cause")
        for one in data["clauses"]:
            if one["title"] in data["cause"]["clauses"]:
                for problem in one["problems"]:
                    yield from layout.wrapped(problem, first="  ! ", rest="    ")
        if data["nodes"]:
            yield from layout.wrapped(_funnel(data))
        yield from _waiting(data, layout)
        yield from _clauses(data)
        yield from _evidence(data, layout)
    else:
        yield from layout.wrapped(f"If it were scheduled now: {_funnel(data)} possible")
        yield from _scores(data, layout)
        yield from _clauses(data)
    yield from _on_nodes(data, layout)
    yield from _remedies(data, layout)
    if data["notes"]:
        yield ""
    for note in data["notes"]:
        yield from layout.wrapped(f"Note: {note}")


def _headline(data: Json, width: int) -> str:
    """The pod, since when it is pending, and when it is tried again: one line, with as many events as it has room."""
    if data["node"] is not None:
        return f"{data['pod']}  is on {data['node']}"
    waiting = data["waiting"] or {}
    since, attempts, again = (waiting.get(key) for key in ("pendingSeconds", "attempts", "againInSeconds"))
    text = f"{data['pod']}  pending" if since is None else f"{data['pod']}  pending {duration(since)}"
    text += f", {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else ""
    when = "; tried again" if again is None else f"; tried again in {duration(again)}"
    events = list(data["events"])
    while events:
        line = f"{text}{when}{' when:' if again is None else ', or at once when:'} {' · '.join(events)}"
        if len(line) <= width:
            return line
        events.pop()
    return text if again is None else f"{text}{when}"


def _funnel(data: Json) -> str:
    parts = [count_of_nodes(data["nodes"]), *(f"{one['nodes']} {one['clause']}" for one in data["funnel"])]
    return f"{' ─ '.join(parts)} → {data['passing']}"


def _waiting(data: Json, layout: Layout) -> Iterator[str]:
    waiting = data["waiting"]
    if waiting is None or not (waiting["state"] or waiting["details"] or waiting["history"]):
        return
    if waiting["state"]:
        ahead, turn = waiting["ahead"], waiting["turnInSeconds"]
        before = f", {ahead} pod{'' if ahead == 1 else 's'} before it" if ahead else ""
        yield f"Queue: {waiting['state']}{before}" + ("" if turn is None else f", its turn in about {duration(turn)}")
    for line in (*waiting["details"], *waiting["history"]):
        yield from layout.wrapped(line, first=" · ", rest="   ")


def _clauses(data: Json) -> Iterator[str]:
    if not data["clauses"]:
        return
    rows = [("CLAUSE", "PASS IT", "WOULD PASS WITHOUT IT ALONE")]
    rows += [(one["title"], str(one["pass"]), str(one["passWithoutItAlone"] or "-")) for one in data["clauses"]]
    first = max(len(row[0]) for row in rows)
    yield ""
    for title, passed, alone in rows:
        yield f" {title:<{first}}  {passed:>7}  {alone:>27}"


def _evidence(data: Json, layout: Layout) -> Iterator[str]:
    """The clauses that are not the cause with what is known about them, details, and the nodes by what they fail."""
    blocking = data["cause"]["clauses"]
    lines: list[str] = []
    for one in data["clauses"]:
        is_cause = one["title"] in blocking
        said = one["details"] if is_cause else [*filter(None, [one["cause"]]), *one["details"], *one["problems"]]
        lines += [f"{one['title']}: {line}" for line in said]
    if lines:
        yield ""
    for line in lines:
        yield from layout.wrapped(line, first=" · ", rest="   ")
    groups = data["groups"]
    if not groups or data["cause"]["fitsNow"]:
        return
    yield ""
    yield " NODES  FAIL"
    for group in groups if layout.every_node else groups[:_MAX_GROUPS]:
        names = group["nodes"]
        shown = some_names(names, len(names) if layout.every_node else _FEW)
        what = ", ".join(group["clauses"]) or "nothing"
        yield from layout.wrapped(f"{what}: {shown}", first=f" {len(names):>5}  ", rest="        ")
    if len(groups) > _MAX_GROUPS and not layout.every_node:
        yield f"        and {len(groups) - _MAX_GROUPS} more sets of clauses; --nodes shows all"


# --- one node -------------------------------------------------------------------------------------------------------


def _on_nodes(data: Json, layout: Layout) -> Iterator[str]:
    for answer in data["onNodes"]:
        yield ""
        yield from layout.wrapped(f"Node {answer['node']}: {_on_node(answer)}")


def _on_node(answer: Json) -> str:
    if not answer["exists"]:
        return "there is no such node" + (f"; did you mean {answer['nearest']}?" if answer["nearest"] else "")
    if answer["clauses"]:
        return "not possible. " + "; ".join(f"{one['title']}: {one['cause']}" for one in answer["clauses"])
    if not answer["scores"]:
        return "possible"
    scores = ", ".join(f"{one['plugin']} {one['score']}×{one['weight']}" for one in answer["scores"])
    return f"possible, with a score of {answer['total']}: {scores}"


def _scores(data: Json, layout: Layout) -> Iterator[str]:
    """The best nodes, and those that were asked for, by plugin: those that score all of them alike are left out."""
    rows = data["scores"]
    if not rows:
        return
    plugins = list(zip(*(row["scores"] for row in rows), strict=True))
    telling = [scores for scores in plugins if len(rows) == 1 or len({one["score"] for one in scores}) > 1]
    names = [f"{row['node']}*" if row["node"] == data["node"] else row["node"] for row in rows]
    width = max(map(len, names)) + 1
    table = [[f" {name:<{width}}", f"{row['total']:>5}"] for name, row in zip(names, rows, strict=True)]
    head = [f" {'NODE':<{width}}", "TOTAL"]
    for scores in telling:
        title = f"{scores[0]['plugin']}×{scores[0]['weight']}"
        if len("  ".join([*head, title])) > layout.width and len(head) > 1:
            yield from _table(head, table)
            head, table = head[:1], [line[:1] for line in table]
        head.append(title)
        for line, one in zip(table, scores, strict=True):
            line.append(f"{one['score']:>{len(title)}}")
    yield from _table(head, table)
    alike = [scores[0] for scores in plugins if scores not in telling]
    if alike:
        same = ", ".join(f"{one['plugin']} {one['score']}×{one['weight']}" for one in alike)
        yield from layout.wrapped(f"The same for all: {same}", first=" ", rest="   ")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield from ("  ".join(row) for row in (head, *rows))


# --- what would help ------------------------------------------------------------------------------------------------


def _remedies(data: Json, layout: Layout) -> Iterator[str]:
    found = data["remedies"]
    if found:
        yield ""
        yield "Would run (each was tried on a copy of this cluster):"
        width = max(len(one["title"]) for one in found)
        for number, one in enumerate(found, 1):
            yield layout.style("good", f" {number:>2}  {one['title']:<{width}}  → {target(one)}")
            for note in one["notes"]:
                yield from layout.wrapped(f"({note})", first=_INDENT, rest=_INDENT)
            for command in one["commands"]:
                yield f"{_INDENT}{command}"
    elif data["tried"]:
        yield ""
        tried: Sequence[str] = data["tried"]
        yield from layout.wrapped(f"Nothing that was tried lets it run: {some_names(tried, _MAX_TRIED)}")
    elif data["cause"] is not None and not data["cause"]["fitsNow"]:
        yield ""
        yield "No change is known that would let it run."
    if not data["triedAll"]:
        yield "There was more to try than is tried for one pod."


def target(remedy: Json) -> str:
    """Where the pod would run."""
    where = remedy["node"] or "there"
    return f"{where}, evicting {some_names(remedy['evicts'])}" if remedy["evicts"] else where


def duration(seconds: float) -> str:
    """``41 s``, ``14 min``, ``3 h``, ``5 d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
