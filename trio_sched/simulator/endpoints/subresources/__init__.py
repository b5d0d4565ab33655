"""Status, binding, eviction, scale, resize and the rest; which kinds have them."""
