"""Replays the families of metrics: names, types, help, labels and buckets, as the text format shows them."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from scoreboard import GoldenRun
from scraped import rendered
from trio.testing import MockClock

from trio_sched.daemon.metrics.families.component_families import RESOURCE_FAMILIES, SLI_FAMILIES
from trio_sched.daemon.metrics.families.exposed import Exposed
from trio_sched.daemon.metrics.families.families import Family, Type, by_name
from trio_sched.daemon.metrics.formats.text_format import lines
from trio_sched.daemon.metrics.series.collection import FAMILIES
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.testing.cluster import virtual_cluster

AREA: Final = "metrics"
BY_PRODUCTS: Final = (
    "aggregator_",
    "apiserver_audit_",
    "apiserver_envelope_",
    "apiserver_storage_",
    "apiserver_validation_",
    "apiserver_webhooks_",
)
"""Prefixes of families that a library of kube-scheduler brings along; they are always zero."""
_SAMPLE: Final = re.compile(r"(\w+)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


def test_families_are_those_of_kube_scheduler(golden: GoldenRun) -> None:
    path = golden.directory / "metrics.json"
    if not path.exists():
        pytest.skip("there is no metrics.json among these recordings")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    by_page = {"": FAMILIES, "/metrics/resources": by_name(RESOURCE_FAMILIES), "/metrics/slis": by_name(SLI_FAMILIES)}
    by_page["/metrics"] = FAMILIES
    for name, expected in _expected(recorded):
        family = by_page[expected.get("endpoint", "")].get(name)
        shown = None if family is None else _shown(family)
        wanted = {key: expected.get(key) for key in ("type", "help", "labels", "buckets")}
        golden.record(AREA, "families", shown == wanted, f"{name}: expected {wanted}, got {shown}")
    golden.check()


def _expected(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    families = {**recorded["families"], **recorded["withGates"]["additionalFamilies"]}
    for name, expected in families.items():
        if name not in recorded["languageRuntimeFamilies"] and not name.startswith(BY_PRODUCTS):
            yield name, expected


def _shown(family: Family) -> dict[str, Any]:
    """What a scrape says of *family* if it has a series."""
    value = Histogram(family.buckets) if family.type is Type.HISTOGRAM else 1.0
    page = "".join(lines(Exposed(family, [(("x",) * len(family.labels), value)])))
    first, second, *samples = page.splitlines()
    found = [dict(_LABEL.findall(match[2] or "")) for match in map(_SAMPLE.fullmatch, samples) if match]
    assert len(found) == len(samples)
    buckets = [labels["le"] for labels in found if "le" in labels]
    return {
        "type": second.removeprefix(f"# TYPE {family.name} "),
        "help": first.removeprefix(f"# HELP {family.name} "),
        "labels": sorted({label for labels in found for label in labels} - {"le"}),
        "buckets": buckets or None,
    }


async def test_the_resources_of_pods_are_shown_as_recorded(golden: GoldenRun, autojump_clock: MockClock) -> None:
    recordings, setup = golden.directory / "http.jsonl.gz", golden.directory / "http-setup.json"
    if not recordings.exists() or not setup.exists():
        pytest.skip("there are no recordings of requests")
    with gzip.open(recordings, "rt", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    shown = [case for case in cases if _is_page_of_resources(case)]
    objects = json.loads(setup.read_text(encoding="utf-8"))["objects"]
    async with virtual_cluster(scheduler=False, kubelets=False, volumes=False) as cluster:
        for one in objects:
            await cluster.create(one)
            status = one.get("status")
            if one["kind"] == "Pod" and status:
                await cluster.patch(one, {"status": status}, subresource="status")
        process = await cluster.start_scheduler()
        await cluster.settle()
        assert process.assembly is not None
        content_type, body = await rendered(process.assembly.metrics.pages.resources, "")
    for case in shown:
        expected = case["expect"]
        agreed = body.decode() == expected["body"] and content_type == expected["headers"]["content-type"]
        golden.record(AREA, "resources", agreed, f"{case['name']}: got {body.decode()}")
    golden.check()


def _is_page_of_resources(case: Mapping[str, Any]) -> bool:
    request, expected = case["request"], case["expect"]
    is_shown = expected["status"] == 200 and expected.get("body", "").startswith("# HELP")
    return bool(request["path"] == "/metrics/resources" and is_shown)
