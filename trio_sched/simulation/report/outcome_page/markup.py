"""Elements of HTML and SVG in which every text is escaped."""

from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "input", "rect", "line", "path", "circle"})


class Markup(str):
    """Text that is markup already; any other is escaped."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float) -> Markup:
    """The element *name*; ``class_`` stands for ``class``, and ``_`` in names of attributes for ``-``."""
    given = "".join(f' {_attribute(key)}="{escape(str(value))}"' for key, value in attributes.items())
    if name in _VOID and not children:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*parts: str) -> Markup:
    """*parts* one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
