"""What pages are made of: the document itself, facts, and the sections of reports as tables."""

from collections.abc import Iterable
from typing import Any, Final

from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.style import STYLE, style_of_choices
from trio_sched.simulation.report.sections import Names, Section, Shown

MOST_NAMES: Final = 20
"""How many pods or nodes are listed in a cell."""
MOST_ROWS: Final = 1000
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, parts: Iterable[str], *, choices: int) -> str:
    """A whole document that needs nothing else; a choice on it is among so many *choices* at most."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("style", Markup(STYLE + style_of_choices(choices))),
    )
    body = element("body", element("main", element("h1", title), *parts))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def tiles(facts: Iterable[tuple[str, str]]) -> Markup:
    """Names and values, the values large."""
    made = (element("div", element("b", value), element("span", name), class_="tile") for name, value in facts)
    return element("div", *made, class_="tiles")


def terms(facts: Iterable[tuple[str, str]]) -> Markup:
    """Names and values, one below the other; nothing if there are none."""
    facts = list(facts)
    if not facts:
        return Markup()
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in facts))


def section(title: str, *parts: str) -> Markup:
    """A part of the page with a title."""
    return element("section", element("h2", title), *parts)


def drawn_section(one: Section, title: str = "", drawn: Markup | None = None) -> Markup:
    """*one* with what has to be told beside it; *title* and *drawn* stand in place of its own title and its table."""
    texts = (element("p", text) for text in (one.left_out, one.note) if text)
    return section(title or one.title, table(one) if drawn is None else drawn, *texts)


def table(one: Section) -> Markup:
    """The rows of *one*."""
    heads = list(filter(None, one.heads))
    classes = [{"class_": "number"} if head in one.numbers else {} for head in heads]

    def row(kind: str, cells: list[Any]) -> Markup:
        return element("tr", *(element(kind, _cell(cell), **more) for cell, more in zip(cells, classes, strict=True)))

    head = element("thead", row("th", heads))
    body = element("tbody", *(row("td", cells) for cells in one.shown_rows()))
    return element("div", element("table", head, body), class_="wide")


def _cell(cell: Any) -> str:
    if isinstance(cell, Names):
        more = len(cell.all) - MOST_NAMES
        return ", ".join(cell.all[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    if isinstance(cell, Shown):
        if cell.share is None:
            return cell.text
        width, style = f"width:{min(100 * cell.share, 100):.1f}%", "over" if cell.share > 1 else "within"
        return join(cell.text, element("span", element("i", style=width, class_=style), class_="bar"))
    return join(*(element("div", line) for line in cell)) if isinstance(cell, list) else cell
