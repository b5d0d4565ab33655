"""An `Answer` as tables and as a page."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from trio_sched.simulation.report.outcome_page.document import document, drawn_section, section, terms
from trio_sched.simulation.report.outcome_page.markup import Markup, element
from trio_sched.simulation.report.outcome_text import section_as_table
from trio_sched.simulation.tables import line
from trio_sched.what_if.answer import Answer


def answer_as_tables(answer: Answer) -> Iterator[RenderableType]:
    """What becomes of the cluster in a few sentences, then in tables, then how to do it."""
    yield line(answer.headline, "bold")
    for sentence in answer.sentences:
        yield line(f"- {sentence}")
    for one in answer.sections:
        yield from section_as_table(one)
    if answer.commands:
        yield line("To do it:")
    for command in answer.commands:
        yield line(f"  {command}")


def answer_as_page(answer: Answer, inputs: Sequence[tuple[str, str]], token: str) -> str:
    """*answer* as a whole document.

    Args:
        answer: what to show.
        inputs: what was asked about, as names and values.
        token: of the state of the cluster that it holds for.
    """
    return document(answer.headline, _parts(answer, [*inputs, ("Token", token)]), choices=1)


def _parts(answer: Answer, inputs: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    yield element("ul", *(element("li", sentence) for sentence in answer.sentences))
    yield terms(inputs)
    for one in answer.sections:
        if one.is_shown:
            yield drawn_section(one)
    if answer.commands:
        yield section("To do it", *(element("pre", command) for command in answer.commands))
