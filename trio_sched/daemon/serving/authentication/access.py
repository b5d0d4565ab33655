"""In front of the routes: who sends a request, and whether that user may."""

from __future__ import annotations

import logging

import trio
from attrs import define, field

from trio_sched.daemon.metrics.series.serving import ServingMetrics
from trio_sched.daemon.serving.authentication.authentication import Authentication
from trio_sched.daemon.serving.authentication.authorization import Authorization
from trio_sched.daemon.serving.authentication.users import ANONYMOUS, User
from trio_sched.daemon.serving.errors import NotAuthenticated, ReviewFailed
from trio_sched.daemon.serving.messages import Handler, Request, Response, refusal
from trio_sched.daemon.serving.status_bodies import forbidden, unauthorized, without_markup
from trio_sched.go.text import quote

log = logging.getLogger(__name__)


@define(eq=False)
class AccessControl:
    """Lets requests through to *handler*."""

    authentication: Authentication
    authorization: Authorization
    handler: Handler
    metrics: ServingMetrics = field(factory=ServingMetrics)

    async def __call__(self, request: Request) -> Response:
        """The handler's response; 401, 403, or 500 if the API server cannot be asked."""
        began = trio.current_time()
        try:
            user = await self.authentication.user_of(request)
        except NotAuthenticated as error:
            log.debug("Unable to authenticate the request", extra={"err": str(error)})
            self.metrics.authenticated("error", trio.current_time() - began)
            return unauthorized(request)
        seconds = trio.current_time() - began
        if user.name != ANONYMOUS.name:
            request.on_authenticated()
        try:
            return await self._authorized(request, user)
        finally:  # counted after the response, as by kube-scheduler: a scrape does not show itself
            self.metrics.authenticated("success", seconds)
            self.metrics.authenticated_user(user.name)

    async def _authorized(self, request: Request, user: User) -> Response:
        verb, began = request.method.lower(), trio.current_time()
        try:
            verdict = await self.authorization.judge(user, verb, request.path)
        except ReviewFailed as error:
            self.metrics.authorized("error", trio.current_time() - began)
            return refusal(without_markup(f"Internal Server Error: {quote(request.target)}: {error}"), 500)
        seconds = trio.current_time() - began
        try:
            if verdict.allowed:
                return await self.handler(request)
            return forbidden(request, user=user.name, verb=verb, path=request.path, reason=verdict.reason)
        finally:
            self.metrics.authorized(verdict.label, seconds)
