"""A front proxy that has authenticated the user and says so in headers: believed for its certificate."""

from __future__ import annotations

from urllib.parse import unquote

from attrs import define, field

from trio_sched.daemon.serving.authentication.client_certificates import Authorities, common_name
from trio_sched.daemon.serving.authentication.users import User
from trio_sched.daemon.serving.errors import NotAuthenticated
from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving_settings import RequestHeaderSettings


@define(eq=False)
class FrontProxyAuthenticator:
    """Takes the user from headers, if the certificate is that of a front proxy."""

    authorities: Authorities
    settings: RequestHeaderSettings = field(factory=RequestHeaderSettings)
    """May be replaced at any time."""
    reads_uid: bool = True

    async def authenticate(self, request: Request) -> User | None:
        """The user in the headers; None if there is no certificate, no authority to verify it by, or no user.

        Raises:
            NotAuthenticated: the certificate is not that of a front proxy.
        """
        if not request.certificates or self.authorities.is_empty:
            return None
        certificate = self.authorities.verify(request.certificates)
        settings = self.settings
        if settings.allowed_names and common_name(certificate) not in settings.allowed_names:
            raise NotAuthenticated("x509: the common name of the front proxy is not in the allowed list")
        name = _first(request, settings.username_headers)
        if not name:
            return None
        return User(
            name=name,
            uid=_first(request, settings.uid_headers) if self.reads_uid else "",
            groups=tuple(_all(request, settings.group_headers)),
            extra=_extra(request, settings.extra_prefixes),
        )


def _first(request: Request, names: tuple[str, ...]) -> str:
    return next(filter(None, (request.header(name.lower()) for name in names)), "")


def _all(request: Request, names: tuple[str, ...]) -> list[str]:
    return [value for name in names for key, value in request.headers if key == name.lower() and value]


def _extra(request: Request, prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for prefix in map(str.lower, prefixes):
        for key, value in request.headers:
            if key.startswith(prefix):
                name = unquote(key.removeprefix(prefix), errors="replace")
                found[name] = (*found.get(name, ()), value)
    return found
