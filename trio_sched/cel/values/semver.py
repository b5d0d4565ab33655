"""Semantic versions, as attributes of devices and ``semver()`` have them."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from attrs import frozen

from trio_sched.cel.errors import EvaluationError
from trio_sched.go.text import quote

_DIGITS: Final = re.compile(r"[0-9]*\Z")
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]*\Z")
_MAX: Final = 2**64 - 1


@total_ordering
@frozen(eq=False)
class Semver:
    """A version; build metadata counts neither for equality nor for order."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    @property
    def _order(self) -> tuple[object, ...]:
        # Numbers come before words, and a release comes after all of its pre-releases.
        parts = tuple((isinstance(part, str), part) for part in self.prerelease)
        return (self.major, self.minor, self.patch, not parts, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order == other._order

    def __lt__(self, other: Semver) -> bool:
        return self._order < other._order

    def __hash__(self) -> int:
        return hash(self._order)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return f"{text}+{'.'.join(self.build)}" if self.build else text


def parse_semver(text: str, *, normalize: bool = False) -> Semver:
    """The version that *text* is.

    Args:
        text: for instance ``1.2.3-rc.1+build.7``.
        normalize: accept a leading ``v``, leading zeros, and missing minor and patch numbers too.

    Raises:
        EvaluationError: it is none; the words are those of the library that Kubernetes uses.
    """
    parts = (_normalized(text) if normalize else text).split(".", 2)
    if parts == [""]:
        raise EvaluationError("Version string empty")
    if len(parts) < 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, has_build, build = parts[2].partition("+")
    patch, has_prerelease, prerelease = rest.partition("-")
    return Semver(
        major,
        minor,
        _number(patch, "Patch"),
        tuple(map(_prerelease, prerelease.split("."))) if has_prerelease else (),
        tuple(map(_build, build.split("."))) if has_build else (),
    )


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if "0" <= stripped[:1] <= "9" else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _number(text: str, what: str) -> int:
    if not _DIGITS.match(text):
        raise EvaluationError(f"Invalid character(s) found in {what.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{what} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.match(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return _unsigned(text)
    if not _IDENTIFIER.match(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise EvaluationError("Build meta data is empty")
    if not _IDENTIFIER.match(text):
        raise EvaluationError(f"Invalid character(s) found in build meta data {quote(text)}")
    return text
