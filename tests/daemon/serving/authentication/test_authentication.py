"""Who sends a request: certificates, front proxies, tokens, nobody."""

import base64
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import trio
from client_authority import ClientAuthority
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from trio_sched.daemon.serving import limits
from trio_sched.daemon.serving.authentication.authentication import Authentication
from trio_sched.daemon.serving.authentication.client_certificates import Authorities, CertificateAuthenticator
from trio_sched.daemon.serving.authentication.front_proxy import FrontProxyAuthenticator
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.tokens import TokenAuthenticator
from trio_sched.daemon.serving.authentication.users import ANONYMOUS, User
from trio_sched.daemon.serving.errors import NotAuthenticated, ReviewFailed
from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving_settings import RequestHeaderSettings
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.http.http1 import Reply
from trio_sched.simulator import ApiServer

CLIENTS, PROXIES, OTHERS = (ClientAuthority(name) for name in ("clients", "proxies", "others"))
SECRET = "very-secret-token"


def request(*headers: tuple[str, str], certificate: bytes | None = None, websocket: bool = False) -> Request:
    shown = () if certificate is None else tuple(x509.load_pem_x509_certificates(certificate))
    return Request(method="GET", path="/", target="/", headers=headers, certificates=shown, is_websocket=websocket)


def trusting(*authorities: ClientAuthority) -> Authorities:
    trusted = Authorities()
    trusted.replace("".join(one.pem for one in authorities))
    return trusted


# --- certificates ----------------------------------------------------------------------------------------------------


async def test_a_certificate_names_user_groups_and_uid() -> None:
    certificate, _key = CLIENTS.issue("ann", ("a", "b"), uid="u-1")
    user = await CertificateAuthenticator(trusting(CLIENTS)).authenticate(request(certificate=certificate))
    assert user is not None
    assert (user.name, user.groups, user.uid) == ("ann", ("a", "b"), "u-1")
    user = await CertificateAuthenticator(trusting(CLIENTS), reads_uid=False).authenticate(
        request(certificate=certificate)
    )
    assert user is not None
    assert user.uid == ""


@pytest.mark.parametrize(
    "certificate",
    [
        OTHERS.issue("ann")[0],
        CLIENTS.issue("ann", expired=True)[0],
        CLIENTS.issue("ann", usage=ExtendedKeyUsageOID.SERVER_AUTH)[0],
    ],
    ids=["signed by somebody else", "expired", "for servers"],
)
async def test_a_certificate_that_is_not_good_is_refused(certificate: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        await CertificateAuthenticator(trusting(CLIENTS)).authenticate(request(certificate=certificate))


async def test_without_an_authority_certificates_are_ignored() -> None:
    certificate, _key = CLIENTS.issue("ann")
    assert await CertificateAuthenticator(Authorities()).authenticate(request(certificate=certificate)) is None


def test_authorities_that_cannot_be_read_leave_those_before() -> None:
    trusted = trusting(CLIENTS)
    for bad in ("no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        with pytest.raises(ValueError, match=r"."):
            trusted.replace(bad)
    assert trusted.verify(tuple(x509.load_pem_x509_certificates(CLIENTS.issue("ann")[0])))
    assert trusted.replace("") is True
    assert trusted.is_empty


# --- front proxies ---------------------------------------------------------------------------------------------------

REMOTE = (("x-remote-user", "ann"), ("x-remote-group", "a"), ("x-remote-group", "b"), ("x-remote-extra-s%2fx", "v"))


async def test_a_front_proxy_says_who_the_user_is() -> None:
    proxy = FrontProxyAuthenticator(trusting(PROXIES), RequestHeaderSettings(allowed_names=("front",)))
    user = await proxy.authenticate(request(*REMOTE, certificate=PROXIES.issue("front")[0]))
    assert user == User(name="ann", groups=("a", "b"), extra={"s/x": ("v",)})
    with pytest.raises(NotAuthenticated, match="allowed list"):
        await proxy.authenticate(request(*REMOTE, certificate=PROXIES.issue("another")[0]))
    with pytest.raises(NotAuthenticated):
        await proxy.authenticate(request(*REMOTE, certificate=OTHERS.issue("front")[0]))
    assert await proxy.authenticate(request(*REMOTE)) is None
    assert await proxy.authenticate(request(certificate=PROXIES.issue("front")[0])) is None


async def test_the_first_credential_that_is_good_wins() -> None:
    chain = Authentication(
        (FrontProxyAuthenticator(trusting(PROXIES)), CertificateAuthenticator(trusting(CLIENTS, PROXIES)))
    )
    ann = await chain.user_of(request(certificate=CLIENTS.issue("ann")[0]))
    assert (ann.name, ann.groups) == ("ann", ("system:authenticated",))
    assert (await chain.user_of(request(certificate=PROXIES.issue("front")[0]))).name == "front"
    assert await chain.user_of(request()) is ANONYMOUS
    with pytest.raises(NotAuthenticated):
        await chain.user_of(request(certificate=OTHERS.issue("ann")[0]))


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def api() -> ApiServer:
    return ApiServer(users={SECRET: ("ann", ["a"])})


@pytest.fixture
async def tokens(client: KubeClient) -> AsyncIterator[TokenAuthenticator]:
    async with trio.open_nursery() as nursery:
        yield TokenAuthenticator(ReviewClient(client, Random(0)), 10.0, nursery)
        nursery.cancel_scope.cancel()


def bearing(token: str) -> Request:
    return request(("authorization", f"Bearer {token}"))


def count_reviews(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    handle = api.handle

    async def counted(method: str, path: str, *rest: Any, **named: Any) -> Any:
        seen.append(path)
        return await handle(method, path, *rest, **named)

    monkeypatch.setattr(ApiServer, "handle", lambda _self, *rest, **named: counted(*rest, **named))
    return seen


async def test_a_token_is_reviewed_once_while_the_review_counts(
    tokens: TokenAuthenticator, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    seen = count_reviews(api, monkeypatch)
    for _ in range(3):
        user = await tokens.authenticate(bearing(SECRET))
        assert user == User(name="ann", groups=("a",))
    assert len(seen) == 1
    await trio.sleep(11)
    await tokens.authenticate(bearing(SECRET))
    assert len(seen) == 2


async def test_those_who_present_the_same_token_share_its_review(
    tokens: TokenAuthenticator, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    seen = count_reviews(api, monkeypatch)
    api.faults.set_latency(1.0)
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(tokens.authenticate, bearing(SECRET))
    assert len(seen) == 1


async def test_a_token_that_nobody_knows_is_refused(tokens: TokenAuthenticator, autojump_clock: object) -> None:
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing("another"))


async def test_huge_tokens_are_tokens_like_others(tokens: TokenAuthenticator, autojump_clock: object) -> None:
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing("x" * 60_000))
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing("\udcff\x00ÿ"))


async def test_no_secret_is_kept_or_logged(
    tokens: TokenAuthenticator, api: ApiServer, caplog: pytest.LogCaptureFixture, autojump_clock: object
) -> None:
    caplog.set_level(logging.DEBUG)
    await tokens.authenticate(bearing(SECRET))
    api.stop()
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing(f"{SECRET}-2"))
    assert SECRET not in caplog.text
    assert SECRET not in repr(vars(tokens) if hasattr(tokens, "__dict__") else tokens._cache._entries)


@pytest.mark.parametrize(
    "answer",
    [b"", b"[]", b"{}", b'{"status":5}', b'{"status":{"authenticated":"yes"}}', b"[" * 100_000, b"\xff", b"<html>"],
)
async def test_junk_from_the_api_server_authenticates_nobody(
    tokens: TokenAuthenticator, monkeypatch: pytest.MonkeyPatch, answer: bytes, autojump_clock: object
) -> None:
    async def say_junk(*_args: Any, **_kwargs: Any) -> Reply:
        return Reply(201, [], answer)

    monkeypatch.setattr(KubeClient, "request", say_junk)
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing(SECRET))


async def test_a_server_that_hangs_authenticates_nobody(
    tokens: TokenAuthenticator, api: ApiServer, autojump_clock: object
) -> None:
    api.faults.set_latency(10_000.0)
    began = trio.current_time()
    with pytest.raises(NotAuthenticated):
        await tokens.authenticate(bearing(SECRET))
    assert trio.current_time() - began <= limits.REVIEW_TOTAL_SECONDS


async def test_too_many_reviews_at_once_are_refused(
    tokens: TokenAuthenticator, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr("trio_sched.daemon.serving.authentication.tokens.MAX_REVIEWS_UNDER_WAY", 5)
    api.faults.set_latency(5.0)
    refused = 0

    async def ask(number: int) -> None:
        nonlocal refused
        try:
            await tokens.authenticate(bearing(f"token-{number}"))
        except NotAuthenticated as error:
            refused += "too many" in str(error)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, number)
    assert refused == 15


async def test_a_token_that_was_good_is_reviewed_however_many_others_are(
    tokens: TokenAuthenticator, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr("trio_sched.daemon.serving.authentication.tokens.MAX_REVIEWS_UNDER_WAY", 5)
    assert await tokens.authenticate(bearing(SECRET))
    await trio.sleep(3600)
    api.faults.set_latency(5.0)

    async def ask(number: int) -> None:
        with suppress(NotAuthenticated):
            await tokens.authenticate(bearing(f"token-{number}"))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, number)
        await trio.sleep(1)
        assert await tokens.authenticate(bearing(SECRET)) == User(name="ann", groups=("a",))


async def test_failures_that_pass_are_tried_again(client: KubeClient, api: ApiServer, autojump_clock: object) -> None:
    reviews = ReviewClient(client, Random(0))
    api.faults.fail_next(3, code=500)
    async with trio.open_nursery() as nursery:
        tokens = TokenAuthenticator(reviews, 10.0, nursery)
        assert await tokens.authenticate(bearing(SECRET)) == User(name="ann", groups=("a",))
        api.faults.fail_next(100, code=403)
        began = trio.current_time()
        with pytest.raises(NotAuthenticated):
            await tokens.authenticate(bearing("another"))
        assert trio.current_time() == began
    with pytest.raises(ReviewFailed):
        await reviews.create("/nowhere", {}, type(None))  # type: ignore[arg-type]


def encoded(token: str) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


async def test_a_websocket_carries_its_token_in_a_protocol(tokens: TokenAuthenticator, autojump_clock: object) -> None:
    protocols = ("sec-websocket-protocol", f"v1, {encoded(SECRET)}")
    assert await tokens.authenticate(request(protocols, websocket=True)) == User(name="ann", groups=("a",))
    assert await tokens.authenticate(request(protocols)) is None
    for bad in (encoded(SECRET), f"v1,{encoded('a')},{encoded('b')}", "v1,base64url.bearer.authorization.k8s.io.%%%"):
        with pytest.raises(NotAuthenticated):
            await tokens.authenticate(request(("sec-websocket-protocol", bad), websocket=True))
