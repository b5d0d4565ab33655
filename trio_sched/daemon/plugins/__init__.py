"""What plugins can reach: the handle, writes, jobs, HTTP, tracing."""
