"""Kinds that API servers serve in several versions, or not at all: which one to use, and its shape.

In: what discovery and the responses to lists say. Out: a `Kind` in a served version; its objects look alike in all.
"""
