"""In front of the routes: who sends a request, and whether that user may."""

from __future__ import annotations

import logging

from attrs import define

from trio_sched.daemon.serving.authentication import Authentication
from trio_sched.daemon.serving.authorization import Authorization
from trio_sched.daemon.serving.errors import NotAuthenticated, ReviewFailed
from trio_sched.daemon.serving.messages import Handler, Request, Response, refusal
from trio_sched.daemon.serving.status_bodies import forbidden, unauthorized, without_markup
from trio_sched.documents.go_text import quote

log = logging.getLogger(__name__)


@define(eq=False)
class AccessControl:
    """Lets requests through to *handler*."""

    authentication: Authentication
    authorization: Authorization
    handler: Handler

    async def __call__(self, request: Request) -> Response:
        """The handler's response; 401, 403, or 500 if the API server cannot be asked."""
        try:
            user = await self.authentication.user_of(request)
        except NotAuthenticated as error:
            log.debug("Unable to authenticate the request", extra={"err": str(error)})
            return unauthorized(request)
        verb = request.method.lower()
        try:
            verdict = await self.authorization.judge(user, verb, request.path)
        except ReviewFailed as error:
            return refusal(without_markup(f"Internal Server Error: {quote(request.target)}: {error}"), 500)
        if not verdict.allowed:
            return forbidden(request, user=user.name, verb=verb, path=request.path, reason=verdict.reason)
        return await self.handler(request)
