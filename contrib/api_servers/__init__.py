"""The end-to-end tests against API servers of several versions."""
