"""Records what decisions depend on, and the decisions: what notes it in the event loop, and the thread that writes."""
