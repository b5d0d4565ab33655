"""`trio-sched explain --from`: what a running trio-sched says, over a connection of its own."""

import json
from pathlib import Path

import pytest
from attrs import evolve
from real_time_daemon import node_manifests
from served_scheduler import served_scheduler

from contrib.scenarios.manifests import pod
from trio_sched.cli.live import running_scheduler
from trio_sched.cli.live.running_scheduler import (
    NotExplained,
    explain_there,
    hint_about_trust,
    scheduler_connection,
)
from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.errors import first_leaf
from trio_sched.explanation.text import explanation_text
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.simulation.asked_pods import Name, NoSuchPod
from trio_sched.simulator import ApiServer, populate, wall_clock

USER = ConnectionSettings(
    server="https://api.test", token="t", tls=TlsSettings(ca_data=b"of the API server", server_name="api.test")
)
HUGE = Name(kind="Pod", namespace="default", name="huge")


async def test_a_running_scheduler_explains_with_its_own_configuration_and_history() -> None:
    api = ApiServer(now=wall_clock)
    huge = pod("huge", requests={"cpu": "640"}, schedulerName="special")
    populate(api, [*node_manifests(3), huge])
    async with served_scheduler(api, profiles="profiles: [{schedulerName: special}]") as port:
        there = scheduler_connection(f"https://127.0.0.1:{port}", USER, ca_file=None, insecure=True)
        answers = await explain_there(there, [HUGE], ["n1"])
        with pytest.raises(NoSuchPod, match='there is no pod "default/hug", or it has finished'):
            await explain_there(there, [evolve(HUGE, name="hug")], [])
        distrusting = evolve(there, tls=evolve(there.tls, insecure_skip_verify=False))
        with pytest.raises(BaseExceptionGroup) as refused, hint_about_trust():
            await explain_there(distrusting, [HUGE], [])
        assert "--from-ca" in first_leaf(refused.value).hint
    (answer,) = answers.answers
    assert answer.pods == ("default/huge",)
    assert answer.explanation["cause"]["reasons"] == ["InsufficientCPU"]
    assert answer.explanation["waiting"]["attempts"] == 1
    assert answers.is_pending
    assert "cpu 640" in explanation_text(answer.explanation)


def test_the_credentials_are_those_of_the_user_and_the_trust_is_not(tmp_path: Path) -> None:
    there = scheduler_connection("https://10.0.0.1:10259/", USER, ca_file=tmp_path / "ca.pem", insecure=False)
    assert (there.server, there.token) == ("https://10.0.0.1:10259", "t")
    assert there.tls == TlsSettings(ca_file=str(tmp_path / "ca.pem"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "10.0.0.1:10259",
        "http://10.0.0.1:10259",
        "https://",
        "https://x/path",
        "https://x:port",
        "https://[::1",
        "https://u@x",
    ],
)
def test_what_is_no_address_of_a_scheduler_is_refused(url: str) -> None:
    with pytest.raises(NotExplained, match=r"^--from .*: write https://HOST:PORT"):
        scheduler_connection(url, USER, ca_file=None, insecure=False)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, b"404 page not found\n", "has no /debug/scheduler/explain; is it the address of a trio-sched"),
        (403, b"forbidden\n", "403 forbidden; you need the right to get the path /debug/scheduler/explain"),
        (503, b"the caches are not filled yet\n\x1b[31m", "does not explain pod default/huge: 503 the caches are not"),
    ],
)
def test_a_refusal_says_what_is_missing(status: int, body: bytes, error: str) -> None:
    text = str(running_scheduler._refused("https://x", HUGE, status, body))
    assert error in text
    assert "\x1b" not in text


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"pod":"x","node":null,"cause":{"text":1}}', b"<html>", b"\xff"])
def test_a_reply_that_is_no_explanation_is_named(body: bytes) -> None:
    with pytest.raises(NotExplained, match="what https://x sends is no explanation of this version"):
        running_scheduler._explanation("https://x", body)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["deployment/web", "--from", "https://x"], "--from takes names of pods"),
        (["--all-pending", "--from", "https://x"], "--from takes names of pods"),
        (["huge", "--from", "https://x", "--demo"], "--from takes names of pods"),
        (["huge", "--from-insecure"], "--from-ca and --from-insecure are about the trio-sched of --from"),
        (["huge", "--from", "x"], "--from x: write https://HOST:PORT, of a running trio-sched"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"name": "s", "cluster": {"server": "https://192.0.2.1"}}
    context = {"name": "s", "context": {"cluster": "s", "user": "s"}}
    kubeconfig = {"current-context": "s", "contexts": [context], "clusters": [named], "users": [{"name": "s"}]}
    (tmp_path / "kubeconfig").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **kubeconfig}))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    assert main(["explain", *words]) == ExitCode.NO_ANSWER
    assert error in capsys.readouterr().err
