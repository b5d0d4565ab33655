"""Reference pages about what modules define: made from signatures, annotations and docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from typing import Final

from attrs import evolve, frozen

from contrib.docs.definitions import Attribute, Class, Definition, Method, define
from contrib.docs.docstrings import to_markdown
from contrib.docs.pages import Page, table
from trio_sched.plugin_api.extension_points import HOOK_NAMES

PLUGIN_API: Final = "trio_sched.plugin_api"
TESTING: Final = "trio_sched.testing"
MODULES: Final = ("handle", "columns", "objects", "events", "statuses", "arguments", "testing")
"""The pages of this kind; each is made by the module ``make_NAME``."""
_SILENT_BASES: Final = {"Protocol", "Struct", "TrioSchedError", "ClusterAssertions", "FakeObjects"}
_BLOCKS: Final = re.DOTALL | re.MULTILINE


def _without_gap(found: re.Match[str]) -> str:
    """A block of code as it is, and one empty line for several."""
    return found[1] or "\n\n"


@frozen
class Group:
    """Some definitions with a common heading."""

    title: str
    names: tuple[str, ...]
    text: str = ""
    """In Markdown, below the heading."""
    module: str = PLUGIN_API
    with_values: bool = True
    """Whether defaults of attributes are shown."""
    has_table: bool = False
    """Whether the attributes are in a table of its text already."""
    has_methods: bool = True
    """Whether methods are shown; another page may have them."""

    def definitions(self) -> list[Definition]:
        """Those of its names."""
        found = [define(self.module, name) for name in self.names]
        if self.has_methods:
            return found
        return [evolve(one, methods=()) if isinstance(one, Class) else one for one in found]


@frozen
class ApiPage:
    """A page with groups of definitions."""

    name: str
    header: str
    groups: tuple[Group, ...]
    end: str = ""

    def text(self) -> str:
        """The whole page."""
        parts = [self.header, *(part for group in self.groups for part in self._group(group)), self.end]
        return (
            re.sub(r"(^```.*?^```$)|\n{3,}", _without_gap, "\n".join(filter(None, parts)), flags=_BLOCKS).rstrip()
            + "\n"
        )

    def _group(self, group: Group) -> Iterator[str]:
        yield f"## {group.title}\n"
        yield f"{group.text}\n" if group.text else ""
        for definition in group.definitions():
            yield f"### {definition.name}\n"
            match definition:
                case Class():
                    shown = evolve(definition, attributes=()) if group.has_table else definition

                    yield from _class(shown, partial(link_to, self.name, definition), group.with_values)
                case Method():
                    yield from _method(definition, partial(link_to, self.name, None))
                case Attribute():
                    yield from _constant(definition, partial(link_to, self.name, None))

    @property
    def page(self) -> Page:
        """To be written."""
        return Page(self.name, self.text)


def _class(one: Class, link: partial[str], with_values: bool) -> Iterator[str]:
    bases = [base for base in one.bases if base.partition("[")[0] not in _SILENT_BASES]
    if any(base == "TrioSchedError" or base.endswith(("Error", "Failed")) for base in one.bases):
        others = ", ".join(f"`{base}`" for base in bases)
        yield f"An exception, also a {others}.\n" if others else "An exception.\n"
    yield f"{to_markdown(one.text, link)}\n"
    if one.attributes and not any(each.text for each in one.attributes):
        yield "\n".join(["```python", *(_declared(each, with_values) for each in one.attributes), "```\n"])
    elif one.attributes:
        rows = ((f"`{_declared(each, with_values)}`", _in_a_row(each.text, link)) for each in one.attributes)
        yield table(("attribute", "meaning"), rows)
    for method in one.methods:
        if method.name != one.name:
            yield f"#### {one.name}.{method.name}\n"
        yield from _method(method, link)


def _declared(one: Attribute, with_values: bool) -> str:
    if not one.type:
        return f"{one.name} = {one.value}" if one.value else one.name
    value = f" = {one.value}" if one.value and with_values else ""
    return f"{one.name}: {one.type}{value}"


def _in_a_row(text: str, link: partial[str]) -> str:
    """For a cell of a table: what has no blocks and sections stays as it is, of the rest a line per part."""
    return re.sub(r"\n+- ", " ", to_markdown(text, link)).replace("\n\n", " ")


def _method(one: Method, link: partial[str]) -> Iterator[str]:
    yield "```python\n" + "\n".join(one.signatures) + "\n```\n"
    yield f"{to_markdown(one.text, link)}\n"


def _constant(one: Attribute, link: partial[str]) -> Iterator[str]:
    if one.type or one.value:
        yield f"`{_declared(one, with_values=True)}`\n"
    yield f"{to_markdown(one.text, link)}\n" if one.text else ""


# --- links ----------------------------------------------------------------------------------------------------------


def api_pages() -> list[ApiPage]:
    """All pages of this kind."""
    return [import_module(f"contrib.docs.make_{name}").API_PAGE for name in MODULES]


@cache
def _index() -> dict[str, str]:
    """Where everything is described: page and anchor, by name; methods as ``Class.method``."""
    found = {hook: f"hooks.md#{hook}" for hook in HOOK_NAMES}
    groups = [(page, group) for page in api_pages() for group in page.groups]
    for page, group in sorted(groups, key=lambda one: one[1].module not in (PLUGIN_API, TESTING)):
        for one in group.definitions():
            found.setdefault(one.name, f"{page.name}#{_anchor(one.name)}")
            for method in one.methods if isinstance(one, Class) else ():
                heading = f"{one.name}.{method.name}"
                found.setdefault(heading, f"{page.name}#{_anchor(heading)}")
    return found


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w-]", "", heading.lower())


def link_to(page: str, owner: Class | None, name: str) -> str:
    """*name* as code, linked to where it is described; it may be a member of *owner*."""
    known = _index()
    own = "" if owner is None else f"{owner.name}.{name}"
    if owner is not None and (name == owner.name or name in {one.name for one in owner.attributes}):
        return f"`{name}`"
    target = known.get(own) or known.get(name) or known.get(name.removeprefix("trio_sched.testing."))
    file, _, anchor = (target or "").partition("#")
    is_word = name.islower() and "_" not in name  # could be anything, on a page about something else
    if target is None or (is_word and file not in (page, "hooks.md")):
        return f"`{name}`"
    return f"[`{name}`]({'' if file == page else file}#{anchor})"
