"""From text to a tree of nodes."""
