"""Traces of attempts, by OpenTelemetry: an optional extra.

Only `environment` may be imported without it; the others are imported when the environment asks for traces.
"""
