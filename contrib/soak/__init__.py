"""A soak test: clusters whose every object brings names of its own come and go, and the scheduler must not grow."""
