"""Functions that expressions can call."""
