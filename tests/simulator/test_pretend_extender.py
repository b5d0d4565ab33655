import httpx
import pytest
import trio
from trio.testing import MockClock

from trio_sched.simulator import Asked, ExtenderTransport, PretendExtender, leaving, scoring, serve_extender

REQUEST = {"Pod": {"metadata": {"name": "p"}}, "Nodes": None, "NodeNames": ["a", "b"]}


async def test_it_answers_as_configured(autojump_clock: MockClock) -> None:
    async def slowly(asked: Asked) -> dict[str, str]:
        await trio.sleep(2)
        return {"said": asked.pod}

    extender = PretendExtender(
        "http://x.test/root",
        {"filter": leaving("a".__eq__, "no"), "rank": scoring({"b": 3}), "slow": slowly, "raw": b"?"},
    )
    async with httpx.AsyncClient(transport=ExtenderTransport([extender])) as client:

        async def ask(verb: str) -> httpx.Response:
            return await client.post(f"http://x.test/root/{verb}", json=REQUEST)

        assert (await ask("filter")).json() == {"NodeNames": ["a"], "FailedNodes": {"b": "no"}}
        assert (await ask("rank")).json() == [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 3}]
        extender.delay_seconds, extender.status = 3, 503
        assert ((await ask("slow")).json(), trio.current_time()) == ({"said": "p"}, 5)
        assert (await ask("raw")).content == b"?"
        assert (await ask("unknown")).status_code == 404
        assert extender.asked_about("filter") == ["p"]
        extender.is_dead = True
        with pytest.raises(httpx.ConnectError, match="refused"):
            await ask("filter")


async def test_it_can_be_put_on_a_port() -> None:
    extender = PretendExtender(answers={"filter": leaving("b".__eq__)})
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_extender, extender)
        async with httpx.AsyncClient() as client:
            response = await client.post(f"{url}/extend/filter", json=REQUEST)
            assert response.json()["NodeNames"] == ["b"]
        nursery.cancel_scope.cancel()
