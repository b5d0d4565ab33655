"""Replays recordings: the engine is told the same things again, and its decisions are compared with those recorded."""
