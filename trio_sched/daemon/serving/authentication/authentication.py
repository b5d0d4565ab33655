"""Who sends a request: the first authenticator that finds a user wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import define

from trio_sched.daemon.serving.authentication.users import ANONYMOUS, User
from trio_sched.daemon.serving.errors import NotAuthenticated
from trio_sched.daemon.serving.messages import Request


class Authenticator(Protocol):
    """Looks for one sort of credential."""

    async def authenticate(self, request: Request) -> User | None:
        """The user; None if *request* has no such credential. Raises `NotAuthenticated` if it has a bad one."""


@define(eq=False)
class Authentication:
    """Asks authenticators one after the other."""

    authenticators: Sequence[Authenticator]

    async def user_of(self, request: Request) -> User:
        """The user; anonymous if the request has no credential at all.

        Raises:
            NotAuthenticated: it has bad ones only.
        """
        problems = []
        for authenticator in self.authenticators:
            try:
                user = await authenticator.authenticate(request)
            except NotAuthenticated as error:
                problems.append(str(error))
                continue
            if user is not None:
                return user.authenticated()
        if problems:
            raise NotAuthenticated("; ".join(problems))
        return ANONYMOUS
