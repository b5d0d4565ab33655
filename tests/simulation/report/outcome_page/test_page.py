import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from outcomes import outcome

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulation.history import Timeline
from trio_sched.simulation.report.outcome_page import outcome_as_page

EVIL = "<script>alert('x')</script>\"'&"
VOID = {"meta", "input", "rect", "line", "path", "circle"}


class Reader(HTMLParser):
    """Reads a page; fails where tags do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def cells(self) -> list[tuple[str, str]]:
        """The colour of every cell with its description."""
        pairs = zip(self.attributes, self.attributes[1:], strict=False)
        return [(style, title) for (name, style), (other, title) in pairs if (name, other) == ("class", "title")]


def test_everything_is_on_the_page(small_cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["simulate", "-f", str(small_cluster), "-o", "html", "--explain", "web-1"]
    assert main(arguments) == ExitCode.OK
    page = Reader(capsys.readouterr().out)
    for heading in ("Pools", "Nodes (requested of allocatable)", "Timeline", "Pending", "Why: default/web-1"):
        assert heading in page.words
    assert "default/huge" in page.text
    assert "0/2 nodes are available: 2 Insufficient cpu." in page.text
    assert page.tags.count("svg") == 2
    assert page.words.index("Pending") < page.words.index("Timeline") < page.words.index("Pools")
    cpu = sorted(title for _style, title in page.cells if title.endswith("%") and " cpu, " in title)
    assert [title.split(":")[0] for title in cpu] == ["a", "b"]


def test_what_was_simulated_is_on_the_page(
    small_cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    arguments = ["simulate", "-f", str(small_cluster), "--config", str(config), "--reschedule", "all"]
    assert main([*arguments, "--seed", "7", "--begin", "2026-03-01T22:00:00Z", "-o", "html"]) == ExitCode.OK
    words = Reader(capsys.readouterr().out).words
    assert words[words.index("Cluster") :][:10] == [
        *("Cluster", str(small_cluster), "Placed again", "all", "Configuration", str(config)),
        *("Seed", "7", "Begins", "2026-03-01T22:00:00Z"),
    ]


def test_a_map_is_chosen_without_scripts() -> None:
    text = outcome_as_page(outcome())
    maps = text.count('class="map"')
    assert re.findall(r'<input type="radio" name="map" id="map-(\d)"( checked="checked")?/>', text) == [
        ("0", ' checked="checked"'),
        ("1", ""),
        ("2", ""),
    ]
    assert re.findall(r'<label for="map-\d">([^<]*)<', text) == ["CPU", "Memory", "Pods"]
    assert maps == 3
    for number in range(1, maps + 1):
        assert f".choice>input:nth-of-type({number}):checked~.map:nth-of-type({number}){{display:grid}}" in text


def test_shares_are_those_of_the_table_and_more_than_everything_has_a_legend() -> None:
    text = outcome_as_page(outcome(cpu=3999))
    page = Reader(text)
    assert [title for _style, title in page.cells if " cpu, " in title] == ["n0: 4.0 of 4.0 cpu, 99%"]
    assert "4.0/4.0  99%" in text
    assert "more than 100%" in page.text


def test_a_comparison_has_a_page_of_the_same_sections(
    small_cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: large},"
        " status: {allocatable: {cpu: '64', memory: 64Gi, pods: '110'}}}"
    )
    arguments = ["compare", "-f", str(small_cluster), "--with", str(more), "--seed", "7", "-o"]
    assert main([*arguments, "table"]) == 1
    table = capsys.readouterr().out
    assert main([*arguments, "html"]) == 1
    text = capsys.readouterr().out
    page = Reader(text)
    for heading in ("Side by side", "Moved: 4 pods", "Pending at the end of the first"):
        assert heading in page.words
    assert "Pending at the end of the second" not in page.words
    assert "Moved: 4 pods" in table
    why = "was pending: 0/2 nodes are available: 2 Insufficient cpu."
    assert why in page.text
    assert ("the defaults with " + str(more)) in page.words
    assert {"first-0", "second-0"} <= {value for name, value in page.attributes if name == "id"}
    assert not {"script", "link", "img"} & set(page.tags)


def test_nothing_is_fetched_and_nothing_runs() -> None:
    text = outcome_as_page(outcome())
    page = Reader(text)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [name for name, _value in page.attributes if name in ("src", "href") or name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


def test_names_and_messages_are_escaped_wherever_they_are_shown() -> None:
    page = Reader(outcome_as_page(outcome(EVIL)))
    assert "script" not in page.tags
    assert page.words.count(EVIL) >= 5
    assert any(title.startswith(f"{EVIL}0: ") for _style, title in page.cells)


@pytest.mark.parametrize(
    ("cpu", "style"), [(0, "h0"), (199, "h0"), (200, "h1"), (3999, "h19"), (4000, "h19"), (4001, "h20")]
)
def test_the_colour_of_a_cell_is_what_is_requested(cpu: int, style: str) -> None:
    page = Reader(outcome_as_page(outcome(cpu=cpu)))
    (found,) = [style for style, title in page.cells if " cpu, " in title]
    assert found == style


def test_light_and_dark_define_the_same_colours() -> None:
    text = outcome_as_page(outcome())
    light, dark = re.findall(r":root\{([^}]*)\}", text)
    names = [set(re.findall(r"--[a-z0-9]+(?=:)", part)) for part in (light, dark)]
    assert names[0] == names[1]
    assert set(re.findall(r"var\((--[a-z0-9]+)\)", text)) <= names[0]


def test_long_lists_of_pods_are_cut_short() -> None:
    assert "and 10 more" in Reader(outcome_as_page(outcome())).text


def test_the_cells_of_few_nodes_have_names_and_shares() -> None:
    page = Reader(outcome_as_page(outcome("worker-", nodes=2, cpu=3000)))
    assert page.words[page.words.index("worker-0") + 1] == "75%"


def test_large_clusters_have_small_cells_and_short_lines() -> None:
    moments = tuple(float(i) / 7 for i in range(20_000))
    steps = tuple((moment, i, i) for i, moment in enumerate(moments))
    many = Timeline(arrivals=moments, placements=moments, preemptions=moments, requested=steps)
    text = outcome_as_page(outcome(nodes=5000, timeline=many))
    assert 'class="cells small"' in text
    assert len(text) < 2_000_000


def test_lines_begin_and_end_at_the_edges_of_the_chart() -> None:
    text = outcome_as_page(outcome())
    # The second pod is created in the middle: two steps of half the height.
    assert re.search(r'class="line three" d="M56\.0 103\.0H524\.\d+V10\.0H992\.0"', text)


def test_a_cluster_in_which_nothing_happens_has_a_page() -> None:
    nothing = Timeline(arrivals=(), placements=(), preemptions=(), requested=((0.0, 0, 0),))
    assert "No pod was created or placed." in Reader(outcome_as_page(outcome(timeline=nothing))).text


def test_counts_have_whole_numbers_at_the_axis(small_cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = Timeline(arrivals=(0.0,), placements=(), preemptions=(), requested=((0.0, 0, 0),))
    labels = re.findall(r'text-anchor="end">([^<]*)<', outcome_as_page(outcome(timeline=one)))
    assert labels[:2] == ["0", "1"]
