"""From the watch streams of the API server to cache and queue.

In: lists and changes of every kind in `watched_kinds`. Out: calls of the engine, and the objects that plugins look up.
"""
