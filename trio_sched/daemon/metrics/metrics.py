"""All metrics of one daemon in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from trio_sched.daemon.metrics.series.sources import Sources

if TYPE_CHECKING:
    from trio_sched.daemon.metrics.pages import MetricsPages


@define(eq=False, kw_only=True)
class Metrics(Sources):
    """What is counted in one daemon, and the pages that show it."""

    _pages: MetricsPages | None = field(default=None, init=False)

    @property
    def pages(self) -> MetricsPages:
        """The three pages; what makes them is imported when they are first asked for, not in every start."""
        if self._pages is None:
            from trio_sched.daemon.metrics.pages import AllMetricsPage, MetricsPages, ResourcesPage, SliPage
            from trio_sched.daemon.metrics.series.collection import Collection

            disabled = self.options.disabled
            self._pages = MetricsPages(
                AllMetricsPage(Collection(self).collect, self.reset),
                ResourcesPage(lambda: self.pods.objects, disabled),
                SliPage(self.health_checks, disabled),
                self.health_checks.record,
            )
        return self._pages
