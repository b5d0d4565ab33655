"""Every section of the report is among the tables, on the page and in the data, with what its rows say."""

import json
from html import unescape
from pathlib import Path

import jsonschema
import pytest
from attrs import evolve
from outcomes import outcome
from rich.console import Console

from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.outcome_data import outcome_as_data
from trio_sched.simulation.report.outcome_page import outcome_as_page
from trio_sched.simulation.report.outcome_text import outcome_as_tables
from trio_sched.simulation.report.sections import report_sections
from trio_sched.simulation.tables import table

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "reference" / "outcome.schema.json").read_text())
KEYS = [section.key for section in report_sections(outcome(), most_rows=None)]


def tables_of(shown: Outcome) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        for part in outcome_as_tables(shown, every_pod=False, every_node=False):
            console.print(part)
    return captured.get()


def test_numbers_stay_in_one_piece_on_a_narrow_terminal() -> None:
    console = Console(width=60)
    with console.capture() as captured:
        for part in outcome_as_tables(outcome("a-long-name-of-a-thing"), every_pod=False, every_node=True):
            console.print(part)
    assert captured.get().count("1.0/4.0  25%") == 3


def test_numbers_that_have_no_room_are_broken_and_not_cut() -> None:
    columns = [f"R{number}" for number in range(6)]
    wide = table("Much", "NODE", *columns, right=tuple(columns))
    wide.add_row("name", *["123.0/400.0  25%"] * 6)
    console = Console(width=60)
    with console.capture() as captured:
        console.print(wide)
    shown = captured.get()
    assert shown.count("5%") == 6
    assert "NODE" in shown


def titles(tables: str) -> list[str]:
    return [line.strip() for line in tables.splitlines()]


def test_the_data_have_them_and_nothing_that_is_not_described() -> None:
    found = outcome_as_data(outcome())
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert found.keys() == SCHEMA["properties"].keys()
    assert {key for key, part in found.items() if isinstance(part, list)} == {*KEYS, "explanations"}
    assert [key for key in KEYS if not found[key]] == []


@pytest.mark.parametrize("key", KEYS)
def test_a_section_is_in_all_three_forms(key: str) -> None:
    whole = outcome("thing")
    (section,) = (one for one in report_sections(whole, most_rows=50) if one.key == key)
    (data,) = outcome_as_data(whole)[key]
    assert "thing" in str(data)
    tables, page = tables_of(whole), unescape(outcome_as_page(whole))
    assert section.title in titles(tables)
    (part,) = (one for one in page.split("<section>") if one.startswith(f"<h2>{section.title}</h2>"))
    assert "thing" in part
    if key == "nodes":  # on the page they are cells with a description
        assert 'title="thing0: ' in part
        return
    for head in filter(None, section.heads):
        assert (head if "/" in head else head.upper()) in tables
        assert f">{head}</th>" in part


@pytest.mark.parametrize(
    ("key", "attribute"),
    [
        ("claims", "claims"),
        ("assumptions", "assumptions"),
        ("devices", "devices"),
        ("podGroups", "groups"),
        ("preempted", "evictions"),
        ("pending", "waiting"),
        ("notCreated", "missing"),
    ],
)
def test_what_there_is_none_of_is_not_shown_and_an_empty_list_in_the_data(key: str, attribute: str) -> None:
    (title,) = (one.title for one in report_sections(outcome(), most_rows=None) if one.key == key)
    without = evolve(outcome(), **{attribute: ()})
    assert outcome_as_data(without)[key] == []
    assert title not in titles(tables_of(without))
    assert f"<h2>{title}</h2>" not in outcome_as_page(without)


def test_zones_are_shown_if_nodes_have_any() -> None:
    without = evolve(outcome(), zones=tuple(evolve(zone, name="-") for zone in outcome().zones))
    assert "Zones" not in titles(tables_of(without))
    assert "<h2>Zones</h2>" not in outcome_as_page(without)
    assert outcome_as_data(without)["zones"][0]["name"] == "-"


def test_the_rows_beyond_a_limit_are_counted_in_tables_and_on_the_page() -> None:
    many = evolve(outcome(), evictions=outcome().evictions * 1007)
    assert "and 957 more pods that made room; --output json has all" in tables_of(many)
    assert "<p>and 7 more pods that made room</p>" in outcome_as_page(many)
    assert len(outcome_as_data(many)["preempted"]) == 1007
