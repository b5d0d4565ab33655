"""Metrics as text, OpenMetrics and protobuf, and which of them a client accepts."""
