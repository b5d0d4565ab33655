"""Users, as authentication finds them and authorization judges them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve, field, frozen

_AUTHENTICATED: Final = "system:authenticated"
_UNAUTHENTICATED: Final = "system:unauthenticated"


@frozen(kw_only=True)
class User:
    """Who sends a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(factory=dict)

    def authenticated(self) -> User:
        """The user, in the group of everybody who is authenticated."""
        if self.name == ANONYMOUS.name or {_AUTHENTICATED, _UNAUTHENTICATED} & set(self.groups):
            return self
        return evolve(self, groups=(*self.groups, _AUTHENTICATED))


ANONYMOUS: Final = User(name="system:anonymous", groups=(_UNAUTHENTICATED,))
