"""Cuts texts to the size that whoever stores them takes."""

from __future__ import annotations


def cut_text(text: str, max_bytes: int) -> str:
    """*text* in at most *max_bytes* of UTF-8; a longer one ends in `` ...``."""
    if len(text) <= max_bytes // 4:
        return text
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    return encoded[: max_bytes - 4].decode(errors="ignore") + " ..."
