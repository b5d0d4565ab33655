"""The commands in a text for a shell, as lists of words."""

import re
import shlex
from collections.abc import Iterator

_OPERATORS = set("();<>|&")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\$?")
_INNER = re.compile(r"\$\(([^()]*)\)")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command in *text*, also of those in ``$(…)``; no assignments, redirections or sudo."""
    for line in text.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        words: list[str] = []
        is_target = False
        for word in [*lexer, ";"]:
            if not set(word) <= _OPERATORS:
                yield from (inner for quoted in _INNER.findall(word) for inner in commands(quoted))
                if not is_target:
                    words.append(word)
                is_target = False
            elif set(word) <= set("<>"):
                is_target = True
            else:
                command = _without_prefixes(words)
                if command:
                    yield command
                words = []


def _without_prefixes(words: list[str]) -> list[str]:
    while words and (words[0] == "sudo" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    return words
