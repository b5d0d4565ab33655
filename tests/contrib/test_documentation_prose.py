"""The prose of the documentation: links lead somewhere, and flags, metrics, paths and log lines that it names exist."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from failing_cases import failing
from markdown_pages import DOCS, PAGES, ROOT, anchors, codes, headings, links
from metric_names import FAMILIES, check_expression

from trio_sched.cli.command_table import COMMANDS
from trio_sched.cli.flags.flag_table import ALL_SECTIONS
from trio_sched.cli.flags.legacy_flags import LEGACY_NAMES
from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.pages.endpoints import build_routes
from trio_sched.daemon.serving.pages.liveness import Liveness
from trio_sched.daemon.serving_settings import ServingSettings
from trio_sched.testing.cluster import virtual_cluster

INDEX = DOCS / "index.md"
MONITOR = DOCS / "how_to" / "monitor.md"
TUNE = DOCS / "how_to" / "tune.md"
SECTIONS_OF_INDEX = {"Tutorial": "tutorial", "How to": "how_to", "Reference": "reference", "Explanation": "explanation"}
NOT_OURS = {"keep", "workload", "real", "write", "flag", "by-label"}
"""Flags of ``python -m contrib.benchmarks``, ``.soak``, ``.faults`` and ``.sharding``, and what stands for any."""
METRIC = re.compile(r"(?:scheduler|trio_sched|rest_client|leader_election|workqueue|apiserver|kube_pod)_[a-z_]+")
LOG_LINE = re.compile(r"[A-Z][a-z]+ [\w ;:.,'…-]+")
ENDPOINT = re.compile(
    r"(?:PUT |GET )?(/(?:healthz|livez|readyz|configz|flagz|statusz|metrics|debug)\b[\w/-]*)(?:\?.*)?"
)


def failing_pages(check: Callable[[Path], object], *others: Path) -> dict[str, str]:
    """The pages, and *others*, that *check* fails for, and why."""
    return failing({page.relative_to(ROOT).as_posix(): page for page in (*PAGES, *others)}, check)


# --- links ----------------------------------------------------------------------------------------------------------


def test_links_lead_to_pages_and_headings_that_exist() -> None:
    def check(page: Path) -> None:
        for link in links(page):
            if re.match(r"https?:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert target.is_relative_to(ROOT), link
            if anchor:
                assert target.suffix == ".md", link
                assert anchor in anchors(target), link

    # The names in the changelog may be of the past, its links are not.
    assert failing_pages(check, ROOT / "CHANGELOG.md") == {}


def test_the_index_lists_every_page_once_in_the_order_of_their_kinds() -> None:
    text = INDEX.read_text(encoding="utf-8")
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    assert [part.split("\n")[0] for part in parts] == list(SECTIONS_OF_INDEX)
    for part, folder in zip(parts, SECTIONS_OF_INDEX.values(), strict=True):
        lines = part.strip().split("\n")[2:]
        listed = [re.fullmatch(r"- \[[^]]+\]\(([\w/]+\.md)\): .+\.", line) for line in lines]
        assert all(listed), lines
        pages = [match[1] for match in listed if match]
        assert sorted(pages) == sorted(page.relative_to(DOCS).as_posix() for page in (DOCS / folder).glob("*.md"))
    assert {page.parent.name for page in DOCS.rglob("*.md")} == {"docs", *SECTIONS_OF_INDEX.values()}


def test_the_index_uses_the_titles_of_the_pages() -> None:
    for title, path in re.findall(r"^- \[([^]]+)\]\(([\w/]+\.md)\)", INDEX.read_text(encoding="utf-8"), re.MULTILINE):
        assert headings(DOCS / path)[0] == title


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/index.md" in links(ROOT / "README.md")


# --- what exists in the code ----------------------------------------------------------------------------------------


@cache
def flags() -> set[str]:
    """The names of all flags of the daemon and all options of the commands."""
    found = {flag.name for section in ALL_SECTIONS.values() for flag in section} | LEGACY_NAMES
    for lazy in COMMANDS.values():
        command = lazy.load()
        for one in [command, *(command.commands.values() if isinstance(command, click.Group) else ())]:
            options = [option for option in one.params if isinstance(option, click.Option)]
            found |= {name.lstrip("-") for option in options for name in (*option.opts, *option.secondary_opts)}
    return found


def test_flags_that_are_named_exist() -> None:
    def check(page: Path) -> None:
        for code in codes(page):
            if re.match(r"(kubectl|helm|docker|pip|git|curl) ", code):
                continue
            named = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", code))
            assert named - flags() - NOT_OURS == set()

    assert failing_pages(check) == {}


def test_metrics_that_are_named_exist_with_their_labels() -> None:
    def check(page: Path) -> None:
        for code in codes(page):
            if METRIC.fullmatch(code.partition("{")[0]):
                check_expression(code)
            elif code.endswith("*") and METRIC.fullmatch(f"{code[:-1]}x"):
                assert any(name.startswith(code[:-1]) for name in FAMILIES), code

    assert failing_pages(check) == {}


def test_files_of_the_project_that_are_named_exist() -> None:
    def check(page: Path) -> None:
        for code in codes(page):
            if re.fullmatch(r"(contrib|docs|tests|trio_sched|plugins_builtin)/[\w./*{}-]*", code):
                assert list(ROOT.glob(code.rstrip("/"))), code

    assert failing_pages(check) == {}


async def test_paths_that_are_named_are_served(autojump_clock: object) -> None:
    named = {
        found[1]
        for page in PAGES
        for code in (*codes(page), *re.findall(r"127\.0\.0\.1:10259(/[\w/-]+)", page.read_text(encoding="utf-8")))
        if (found := ENDPOINT.fullmatch(code))
    }
    assert {"/livez", "/configz", "/debug/scheduler/queue", "/debug/flags/v"} <= named
    async with virtual_cluster(nodes=1) as cluster:
        assembly = cluster.scheduler.assembly
        routes = build_routes(ServingSettings(), assembly, Liveness(assembly))
        others = named - set(routes.exact) - {"/livez/NAME"}
        answers = {path: await routes(Request(method="GET", path=path, target=path)) for path in others}
    assert {path: answer.status for path, answer in answers.items() if answer.status != 200} == {}


@cache
def source() -> str:
    """All code of the scheduler and its plugins."""
    files = [file for folder in ("trio_sched", "plugins_builtin") for file in (ROOT / folder).rglob("*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("name", ["debug_a_pending_pod", "monitor", "migrate_from_kube_scheduler", "upgrade", "tune"])
def test_log_lines_that_are_named_are_written(name: str) -> None:
    named = {code for code in codes(DOCS / "how_to" / f"{name}.md") if LOG_LINE.fullmatch(code)}
    assert named
    for line in named:
        parts = re.split(r"\s*…\s*", re.sub(r"^(Insufficient ).+", r"\1", line))
        assert [part for part in parts if part not in source()] == [], line


# --- alerts and figures ---------------------------------------------------------------------------------------------


def alerts() -> list[str]:
    text = (ROOT / "contrib/deploy/helm/trio-sched/files/alerts.yaml").read_text()
    return [rule["alert"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    text = MONITOR.read_text(encoding="utf-8").partition("\n## The alerts\n")[2]
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == alerts()
    for name, section in sections.items():
        meaning, runbook = section.strip().split("\n\n")
        assert len(meaning) > 40, name
        assert runbook.startswith("*Runbook:* "), name
        assert len(runbook) > 100, name


def test_the_figures_about_the_size_of_clusters_are_those_that_were_measured() -> None:
    text = TUNE.read_text(encoding="utf-8")
    (path,) = (code for code in codes(TUNE) if code.startswith("contrib/benchmarks/results/"))
    figures = json.loads((ROOT / path).read_text())["figures"]
    measured = {(one["case"], one["name"]): one["value"] for one in figures if one["bench"] == "start"}
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| (\d+) MiB \| ([\d.]+) s \|$", text, re.MULTILINE)
    assert len(rows) == 2
    for nodes, pods, memory, seconds in rows:
        case = f"{nodes} nodes, {pods} running pods"
        assert int(memory) == round(measured[case, "peak memory"])
        assert float(seconds) == round(measured[case, "until the first bind"], 1)
