"""What is counted about who asks, and about what they may."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

import pytest
import trio
from attrs import define, field
from client_authority import ClientAuthority
from cryptography import x509

from trio_sched.daemon.metrics.families.exposed import Value
from trio_sched.daemon.metrics.series.serving import ServingMetrics
from trio_sched.daemon.serving.authentication.access import AccessControl
from trio_sched.daemon.serving.authentication.authentication import Authentication
from trio_sched.daemon.serving.authentication.authorization import AlwaysAllowed, Authorization
from trio_sched.daemon.serving.authentication.client_certificates import Authorities, CertificateAuthenticator
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.tokens import TokenAuthenticator
from trio_sched.daemon.serving.messages import Request, Response, plain
from trio_sched.engine.hooks.histogram import Histogram
from trio_sched.kube_client.connection import KubeClient
from trio_sched.simulator import ApiServer

CLIENTS, OTHERS = ClientAuthority("clients"), ClientAuthority("others")
LATENCY = 0.3


@define(eq=False)
class Door:
    """Access to a handler, and what is counted there."""

    access: AccessControl
    metrics: ServingMetrics
    known: list[str] = field(factory=list)
    """The paths of requests whose user was known."""

    async def ask(self, path: str = "/metrics", token: str = "", certificate: bytes = b"") -> int:
        headers = [("authorization", f"Bearer {token}")] if token else []
        shown = tuple(x509.load_pem_x509_certificates(certificate)) if certificate else ()
        response = await self.access(
            Request(
                method="GET",
                path=path,
                target=path,
                headers=headers,
                certificates=shown,
                on_authenticated=partial(self.known.append, path),
            )
        )
        return response.status

    def counted(self, family: str) -> dict[tuple[str, ...], Value]:
        """Labels → value; of histograms the number of observations."""
        found = dict(next(series for name, series in self.metrics.collect() if name == family))
        return {key: one.count if isinstance(one, Histogram) else one for key, one in found.items()}


@pytest.fixture
async def api() -> ApiServer:
    api = ApiServer(
        users={"good": ("kubelet", ["a"]), "mail": ("ann@example.test", [])},
        allows=lambda spec: spec["nonResourceAttributes"]["path"] == "/metrics",
    )
    api.faults.set_latency(LATENCY)
    return api


@pytest.fixture
async def door(client: KubeClient) -> AsyncIterator[Door]:
    metrics = ServingMetrics()
    trusted = Authorities()
    trusted.replace(CLIENTS.pem)
    now = datetime.now(UTC)

    async def say_ok(_request: Request) -> Response:
        return plain("ok")

    async with trio.open_nursery() as nursery:
        reviews = ReviewClient(client, Random(0), metrics.token_reviewed)
        authentication = Authentication(
            (
                CertificateAuthenticator(trusted, metrics=metrics, wall_clock=lambda: now),
                TokenAuthenticator(reviews, 10.0, nursery, metrics),
            )
        )
        authorization = Authorization(
            always_allowed=AlwaysAllowed.of(["/healthz"]),
            reviews=ReviewClient(client, Random(0), metrics.access_reviewed),
        )
        yield Door(AccessControl(authentication, authorization, say_ok, metrics), metrics)
        nursery.cancel_scope.cancel()


async def test_attempts_are_counted_by_what_came_of_them(door: Door, autojump_clock: object) -> None:
    assert await door.ask("/healthz") == 200
    assert await door.ask(token="good") == 200
    assert await door.ask(token="mail") == 200
    assert await door.ask("/configz", token="good") == 403
    assert await door.ask(token="bad") == 401
    assert door.counted("authentication_attempts") == {("success",): 4, ("error",): 1}
    assert door.counted("authenticated_user_requests") == {("other",): 1, ("kubelet",): 2, ("email_id",): 1}
    assert door.counted("authorization_attempts_total") == {("allowed",): 3, ("no-opinion",): 1}
    durations = door.metrics.authentications.by_key["success",]
    assert durations.sum == pytest.approx(2 * LATENCY)  # two tokens were reviewed, one of them counts for a while
    assert door.metrics.authorizations.by_key["allowed",].sum == pytest.approx(2 * LATENCY)


async def test_it_is_told_whether_the_user_of_a_request_is_known(door: Door, autojump_clock: object) -> None:
    for path, token in (("/healthz", ""), ("/metrics", "good"), ("/configz", "good"), ("/livez", "bad"), ("/x", "")):
        await door.ask(path, token=token)
    assert door.known == ["/metrics", "/configz"]


async def test_a_request_is_counted_once_it_has_its_response(door: Door, autojump_clock: object) -> None:
    seen: list[dict[tuple[str, ...], Value]] = []

    async def look(_request: Request) -> Response:
        seen.append(door.counted("authentication_attempts") | door.counted("authorization_attempts_total"))
        raise ValueError("a page that is broken")

    door.access.handler = look
    with pytest.raises(ValueError, match="broken"):
        await door.ask("/healthz")
    assert seen == [{}]
    assert door.counted("authentication_attempts") == {("success",): 1}
    assert door.counted("authorization_attempts_total") == {("allowed",): 1}


async def test_reviews_are_counted_by_their_response(door: Door, api: ApiServer, autojump_clock: object) -> None:
    await door.ask(token="good")
    assert door.counted("apiserver_delegated_authn_request_total") == {("201",): 1}
    assert door.counted("apiserver_delegated_authz_request_total") == {("201",): 1}
    api.faults.fail_next(1, code=500)
    await door.ask(token="other")
    assert door.counted("apiserver_delegated_authn_request_total") == {("201",): 2, ("500",): 1}
    api.stop()
    assert await door.ask("/x") == 500
    assert door.counted("apiserver_delegated_authz_request_total")["<error>",] >= 1
    assert door.counted("authorization_attempts_total")["error",] == 1
    assert door.metrics.token_reviews.by_key["201",].sum == pytest.approx(2 * LATENCY)


async def test_what_the_cache_of_tokens_spares_is_counted(door: Door, api: ApiServer, autojump_clock: object) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(door.ask, "/healthz", "good")
        await trio.sleep(LATENCY / 2)
        active = door.counted("authentication_token_cache_active_fetch_count")
        assert active == {("blocked",): 3, ("in_flight",): 1}
    await door.ask("/healthz", "good")
    assert door.counted("authentication_token_cache_request_total") == {("miss",): 3, ("hit",): 1}
    assert door.counted("authentication_token_cache_fetch_total") == {("ok",): 1}
    api.faults.fail_next(100, code=403)
    await door.ask("/healthz", "other")
    assert door.counted("authentication_token_cache_fetch_total") == {("ok",): 1, ("error",): 1}
    assert set(door.counted("authentication_token_cache_active_fetch_count").values()) == {0}
    assert door.metrics.token_requests.by_key["miss",].sum == pytest.approx(4 * LATENCY, abs=0.01)


async def test_certificates_are_counted_by_the_time_that_they_have_left(door: Door, autojump_clock: object) -> None:
    good, expired = CLIENTS.issue("ann")[0], CLIENTS.issue("ann", expired=True)[0]
    assert await door.ask("/healthz", certificate=good) == 200
    assert await door.ask("/healthz", certificate=expired) == 401
    assert await door.ask("/healthz", certificate=OTHERS.issue("ann")[0]) == 401
    counted = door.metrics.certificate_expirations
    assert (counted.count, counted.counts[0]) == (3, 1)  # the first bucket: no time left
    assert counted.sum < timedelta(days=3 * 3650).total_seconds()
