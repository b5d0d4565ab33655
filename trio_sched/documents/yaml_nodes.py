"""The nodes of a text in YAML; what composes them, and needs libyaml for it, is in `yaml_composer`."""

from attrs import define

from trio_sched.documents.errors import DocumentError


@define(eq=False)
class Node:
    """A node as it stands in the text, aliases unresolved."""

    line: int
    column: int = 0
    tag: str = ""
    plain: bool = False
    text: str = ""
    items: "list[Node] | None" = None
    pairs: "list[tuple[Node, Node]] | None" = None
    alias: "Node | None" = None
    """What an alias node stands for; *text* is then the anchor's name."""

    def error(self, text: str) -> DocumentError:
        """The error *text* about this node."""
        return DocumentError(text, line=self.line, column=self.column, problem=text.removeprefix("yaml: "))
