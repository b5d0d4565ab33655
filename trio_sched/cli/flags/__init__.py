"""Flags, as Go reads them, and what follows from them."""
