"""Runs beside another scheduler and compares its decisions; imported only where ``--shadow`` asks for it."""
