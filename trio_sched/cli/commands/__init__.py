"""A file per command."""
