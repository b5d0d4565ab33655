"""Token and access reviews. By default every token is valid and everything is allowed."""

from collections.abc import Callable, Mapping, Sequence

from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.negotiation import mapping


@frozen(kw_only=True)
class ReviewType:
    """A kind that is answered and never stored."""

    group: str
    plural: str
    kind: str
    namespaced: bool = False
    version: str = "v1"


_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"

REVIEW_TYPES = (
    ReviewType(group=_AUTHENTICATION, plural="tokenreviews", kind="TokenReview"),
    ReviewType(group=_AUTHENTICATION, plural="selfsubjectreviews", kind="SelfSubjectReview"),
    ReviewType(group=_AUTHORIZATION, plural="subjectaccessreviews", kind="SubjectAccessReview"),
    ReviewType(group=_AUTHORIZATION, plural="selfsubjectaccessreviews", kind="SelfSubjectAccessReview"),
    ReviewType(
        group=_AUTHORIZATION, plural="localsubjectaccessreviews", kind="LocalSubjectAccessReview", namespaced=True
    ),
    ReviewType(group=_AUTHORIZATION, plural="selfsubjectrulesreviews", kind="SelfSubjectRulesReview"),
)

_PREFIXES = (f"/apis/{_AUTHENTICATION}/", f"/apis/{_AUTHORIZATION}/")
_BY_PLURAL = {review.plural: review for review in REVIEW_TYPES}

_EVERYBODY = {"username": "simulator-admin", "groups": ["system:masters", "system:authenticated"]}


def review_behind(path: str) -> ReviewType | None:
    """The review type of a POST to *path*, if it is one."""
    if not path.startswith(_PREFIXES):
        return None
    parts = path.split("/")
    if len(parts) < 5:
        return None
    review = _BY_PLURAL.get(parts[-1])
    return review if review is not None and review.group == parts[2] else None


@define(kw_only=True, eq=False)
class AccessRules:
    """The answers to reviews.

    Args:
        users: bearer token → (user name, groups); ``None`` accepts every token, as one administrator.
        allows: decides about the ``spec`` of an access review.
    """

    users: Mapping[str, tuple[str, Sequence[str]]] | None = None
    allows: Callable[[Json], bool] = field(default=lambda _spec: True)

    def answer(self, review: ReviewType, body: Json) -> Json:
        """*body* with the status that answers it."""
        spec, metadata = mapping(body, "spec"), mapping(body, "metadata")
        status: Json
        match review.kind:
            case "TokenReview":
                status = self._token_status(str(spec.get("token") or ""))
            case "SelfSubjectReview":
                status = {"userInfo": _EVERYBODY}
            case "SelfSubjectRulesReview":
                everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
                anywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
                status = {"resourceRules": [everything], "nonResourceRules": [anywhere], "incomplete": False}
            case _:
                status = {"allowed": self.allows(spec)}
        return {
            "kind": review.kind,
            "apiVersion": f"{review.group}/{review.version}",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def _token_status(self, token: str) -> Json:
        if self.users is None:
            return {"authenticated": True, "user": _EVERYBODY}
        known = self.users.get(token)
        if known is None:
            return {"user": {}, "error": "[invalid bearer token]"}
        return {"authenticated": True, "user": {"username": known[0], "groups": list(known[1])}}
