"""Draws the results of the ``real`` bench: ``python -m contrib.benchmarks.chart RESULTS.json CHART.svg``.

Two bars for each workload and measure, the longer one as long as the column is wide. All colours can be read on white
and on black, because an image on a page does not know its background.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import click

from contrib.benchmarks.real.compare import OURS, THEIRS, Comparison, Results
from trio_sched.documents.json_values import Json

WIDTH = 860
LABEL_WIDTH, COLUMN_WIDTH, GAP = 230, 290, 25
HEADER_HEIGHT, ROW_HEIGHT, FOOTER_HEIGHT = 58, 44, 28
BAR_HEIGHT = 13
TEXT, THEIR_COLOUR, OUR_COLOUR = "#6e7781", "#8c959f", "#2f81f7"
FONT = "-apple-system,BlinkMacSystemFont,'Segoe UI',Helvetica,Arial,sans-serif"


class NothingToDraw(click.ClickException):
    """The file has no results of the ``real`` bench."""


def draw(document: Json) -> str:
    """The chart of a file with results, as SVG.

    Raises:
        NothingToDraw: the file has no results of the ``real`` bench.
    """
    if not document.get("real"):
        raise NothingToDraw("there are no results of the bench `real` in this file, so there is nothing to draw")
    results = Results.from_json(document["real"])
    drawn = [one for one in results.comparisons if not one.workload.pods_per_second]
    height = HEADER_HEIGHT + len(drawn) * ROW_HEIGHT + FOOTER_HEIGHT
    parts = [*_header(), *(part for row, one in enumerate(drawn) for part in _row(row, one)), _footer(document, height)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="{FONT}" font-size="12" fill="{TEXT}" role="img">\n'
        f"<title>{escape(_title(results))}</title>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _title(results: Results) -> str:
    return f"CPU per pod and time to the last bind of trio-sched and kube-scheduler ({results.kube_scheduler})"


def _header() -> Iterator[str]:
    for position, (colour, name) in enumerate(((OUR_COLOUR, OURS), (THEIR_COLOUR, THEIRS))):
        y = 16 + 18 * position
        yield f'<rect x="0" y="{y - 10}" width="12" height="12" rx="2" fill="{colour}"/>'
        yield _text(18, y, name)
    for column, title in enumerate(("CPU per pod, start-up included", "from the start to the last bind")):
        yield _text(_left(column), 16, title, weight="600")
        yield _text(_left(column), 34, "shorter is better")


def _row(row: int, comparison: Comparison) -> Iterator[str]:
    workload, top = comparison.workload, HEADER_HEIGHT + row * ROW_HEIGHT
    yield _text(0, top + 11, workload.name, weight="600")
    yield _text(0, top + 26, f"{workload.nodes:,} nodes, {workload.pods:,} pods")
    cpu = [comparison.cpu_per_pod_us(one) for one in (OURS, THEIRS)]
    seconds = [comparison.median(one, lambda run: run.last_bind_seconds) for one in (OURS, THEIRS)]
    yield from _bars(0, top, cpu, [f"{value:,.0f} µs" for value in cpu])
    yield from _bars(1, top, seconds, [f"{value:,.1f} s" for value in seconds])


def _bars(column: int, top: int, values: Sequence[float], labels: Sequence[str]) -> Iterator[str]:
    room = COLUMN_WIDTH - 70  # for the labels behind the bars
    for position, (value, label) in enumerate(zip(values, labels, strict=True)):
        y, width = top + position * (BAR_HEIGHT + 2), max(2.0, value / max(values) * room)
        colour = (OUR_COLOUR, THEIR_COLOUR)[position]
        yield f'<rect x="{_left(column)}" y="{y}" width="{width:.1f}" height="{BAR_HEIGHT}" rx="2" fill="{colour}"/>'
        yield _text(_left(column) + width + 6, y + 11, label)


def _footer(document: Json, height: int) -> str:
    machine = document["machine"]
    where = f"{machine['cores']} cores of {machine['processor']}, Python {machine['python']}"
    compared = document["real"]["kube_scheduler"]
    text = f"{document['date'][:10]}, trio-sched {document['version']}, kube-scheduler of {compared}, {where}"
    return _text(0, height - 8, text, size=11)


def _left(column: int) -> int:
    return LABEL_WIDTH + column * (COLUMN_WIDTH + GAP)


def _text(x: float, y: float, text: str, *, weight: str = "normal", size: int = 12) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" font-size="{size}">{escape(text)}</text>'


@click.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("chart", type=click.Path(dir_okay=False, path_type=Path))
def main(results: Path, chart: Path) -> None:
    """Draw the comparison in the file RESULTS into the file CHART."""
    chart.write_text(draw(json.loads(results.read_text())), encoding="utf-8")


if __name__ == "__main__":
    main()
