"""A page of metrics as a scrape reads it: by prometheus-client's parser, not by what wrote it."""

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from trio_sched.daemon.metrics.metrics import Metrics
from trio_sched.daemon.metrics.pages import Page
from trio_sched.testing.cluster import VirtualCluster


@frozen
class Scraped:
    """Name and labels of every sample, and its value; the parser appends ``_total`` to the names of all counters."""

    samples: tuple[tuple[str, dict[str, str], float], ...]

    @classmethod
    def of(cls, text: str) -> "Scraped":
        found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return cls(tuple((sample.name, dict(sample.labels), sample.value) for sample in found))

    def __call__(self, name: str, /, **labels: str) -> float | None:
        """The sum over all series of *name* with these *labels* (and any others); None if there is none."""
        values = [value for found, given, value in self.samples if found == name and labels.items() <= given.items()]
        return sum(values) if values else None

    def by(self, label: str, name: str, /, **labels: str) -> dict[str, float]:
        """The value of *label* → the sum over its series, without zeros."""
        sums: dict[str, float] = {}
        for found, given, value in self.samples:
            if found == name and labels.items() <= given.items() and value:
                sums[given[label]] = sums.get(given[label], 0.0) + value
        return sums


async def rendered(page: Page, accept: str) -> tuple[str, bytes]:
    """Content type and body."""
    content_type, pieces = await page.render(accept)
    return content_type, b"".join(pieces)


async def scrape(metrics: Metrics) -> Scraped:
    _content_type, body = await rendered(metrics.pages.metrics, "")
    return Scraped.of(body.decode())


def metrics_of(cluster: VirtualCluster) -> Metrics:
    assembly = cluster.scheduler.assembly
    assert assembly is not None
    return assembly.metrics


async def scrape_of(cluster: VirtualCluster) -> Scraped:
    return await scrape(metrics_of(cluster))
