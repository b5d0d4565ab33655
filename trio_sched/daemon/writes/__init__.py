"""Writes to the API server that nobody waits for: events, in a bounded pool of tasks."""
