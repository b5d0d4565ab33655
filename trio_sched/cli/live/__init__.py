"""How commands reach a running scheduler, or follow a cluster, and what a terminal or a browser is shown of it."""
