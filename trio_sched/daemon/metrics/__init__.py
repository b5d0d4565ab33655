"""Metrics: what is counted, under which names it is shown, and the three pages that show it.

The path of a pod counts into plain numbers (`recorder`, `requests`, and the engine's `measurements`), at a seventh of a
microsecond for each; only a scrape makes families of these (`collection`), and text of the families (`pages`).
prometheus-client takes no part in that: its observations cost ten times as much, it cannot yield to the event loop, and
names counters in its own way. It is imported for real OpenMetrics, and asked for the metrics of plugins that use it.
"""
