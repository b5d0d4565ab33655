"""SIGUSR2 and the periodic check: the cache as text, and compared with the API server."""
