"""Errors of the HTTPS endpoints."""

from __future__ import annotations

from trio_sched.errors import TrioSchedError


class ServingError(TrioSchedError):
    """The endpoints cannot be served: an address, a certificate or the look-up in the cluster; ends the start."""

    def __init__(self, text: str, *, place: str = "") -> None:
        super().__init__(text)
        self.place = place


class NotAuthenticated(TrioSchedError):
    """A credential was presented and is not good; the reason is for the log."""


class ReviewFailed(TrioSchedError):
    """The API server could not be asked; the text is kube-scheduler's."""


class ClientMisbehaves(TrioSchedError):
    """A client has sent what none has to send; its connection ends."""
