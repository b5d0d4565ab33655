"""The outcome of a simulation as one page of HTML that needs nothing else: no network, no scripts."""

from trio_sched.simulation.report.outcome_page.page import outcome_as_page

__all__ = ["outcome_as_page"]
