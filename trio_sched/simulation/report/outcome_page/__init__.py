"""The outcome of a simulation, or of two, as one page of HTML that needs nothing else: no network, no scripts."""

from trio_sched.simulation.report.outcome_page.comparison_page import comparison_as_page
from trio_sched.simulation.report.outcome_page.page import outcome_as_page

__all__ = ["comparison_as_page", "outcome_as_page"]
