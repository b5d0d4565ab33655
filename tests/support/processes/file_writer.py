from collections.abc import Callable

Write = Callable[[str, str | bytes], str]
"""What the fixture `write` gives: writes a file of that name with that content, and gives its path."""
