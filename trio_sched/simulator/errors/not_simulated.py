"""Kinds of objects that are kept, but that nothing acts on; users are told so."""

from collections.abc import Iterable
from typing import Final

NOT_SIMULATED: Final = {
    "HorizontalPodAutoscaler": "nothing is scaled by load, as pods that are pretended have none",
    "MutatingWebhookConfiguration": "no webhook is called, so that pods get no containers or fields from it",
    "ValidatingWebhookConfiguration": "no webhook is called, so that nothing is refused by it",
    "MutatingAdmissionPolicy": "objects stay as they are sent",
    "ValidatingAdmissionPolicy": "nothing is refused by it",
}
"""Kind → what does not happen."""


def notice(kind: str) -> str | None:
    """What does not happen for objects of *kind*; None if they are simulated."""
    why = NOT_SIMULATED.get(kind)
    return None if why is None else f"{kind} is not simulated: {why}"


def notices(kinds: Iterable[str]) -> list[str]:
    """What does not happen for objects of these *kinds*, each once."""
    return [text for kind in dict.fromkeys(kinds) if (text := notice(kind)) is not None]
