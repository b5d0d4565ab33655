from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_sched.config.schema import Extender as Config
from trio_sched.config.schema import ExtenderTls, ManagedResource
from trio_sched.daemon.extenders.extender import Extender, tls_settings
from trio_sched.daemon.extenders.extender_error import ExtenderError
from trio_sched.daemon.extenders.extender_kinds import node_kind, pod_kind
from trio_sched.daemon.extenders.extenders import Extenders
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.kube_client.settings import TlsSettings
from trio_sched.objects.pod import Container, Pod, ResourceRequirements
from trio_sched.objects.raw_object import RawPod
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.simulator import Asked, ExtenderTransport, PretendExtender, leaving
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import container, make_table, node, pod

URL = "http://extender.test"

RUNNING = [pod(f"v{n}", uid=f"u{n}", node_name="a" if n < 2 else "b") for n in range(4)]
V0, V1, V2, V3 = RUNNING
CANDIDATES = {"a": ([V0, V1], 1), "b": ([V2], 0)}


def extenders(*configs: Config, served: list[PretendExtender]) -> Extenders:
    table = make_table([node("a"), node("b")], RUNNING)
    return Extenders.from_config(configs, lambda: NodeColumns(table), ExtenderTransport(served))


def victims(by_node: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 3} for name, uids in by_node.items()
        }
    }


def preempts(url: str = URL, **more: Any) -> Config:
    return Config(url_prefix=url, preempt_verb="preempt", http_timeout_ns=5 * SECOND_NS, **more)


# --- preempt --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capable", [True, False])
async def test_victims_are_replaced_by_those_of_the_answer(autojump_clock: MockClock, capable: bool) -> None:
    served = PretendExtender(URL, {"preempt": victims({"b": ["u3", "u2"]})})
    asked = extenders(preempts(node_cache_capable=capable), served=[served])
    assert await asked.process_preemption(pod("p"), CANDIDATES) == {"b": ([V3, V2], 3)}
    request = served.asked[0].request
    key, other = "NodeNameToVictims", "NodeNameToMetaVictims"
    if capable:
        key, other = other, key
    assert (sorted(request[key]), request[other]) == (["a", "b"], None)
    assert request[key]["a"]["NumPDBViolations"] == 1


async def test_each_extender_gets_the_victims_that_earlier_ones_left(autojump_clock: MockClock) -> None:
    def all_but_first(asked: Asked) -> Any:
        return {"NodeNameToMetaVictims": dict(list(asked.request["NodeNameToMetaVictims"].items())[1:])}

    served = [PretendExtender(f"http://{name}.test", {"preempt": all_but_first}) for name in "xyz"]
    asked = extenders(*(preempts(one.url, node_cache_capable=True) for one in served), served=served)
    assert await asked.process_preemption(pod("p"), CANDIDATES) == {}
    assert [len(one.asked) for one in served] == [1, 1, 0]  # the second left nothing
    assert list(served[1].asked[0].request["NodeNameToMetaVictims"]) == ["b"]


@pytest.mark.parametrize(
    ("by_node", "text"),
    [
        ({"elsewhere": ["u0"]}, 'nodeinfo not found for node name "elsewhere"'),
        (
            {"b": ["u0"]},
            f"extender: {URL} claims to preempt pod (UID: &{{u0}}) on node: b, but the pod is not found on that node",
        ),
        ({"a": []}, 'expected at least one victim pod on node "a"'),
    ],
)
async def test_invalid_answers_end_the_preemption(
    autojump_clock: MockClock, by_node: dict[str, list[str]], text: str
) -> None:
    asked = extenders(preempts(), served=[PretendExtender(URL, {"preempt": victims(by_node)})])
    with pytest.raises(ExtenderError) as caught:
        await asked.process_preemption(pod("p"), CANDIDATES)
    assert str(caught.value) == text


async def test_victims_on_other_nodes_may_be_in_the_answer_if_they_were_in_the_question(
    autojump_clock: MockClock,
) -> None:
    served = PretendExtender(URL, {"preempt": victims({"b": ["u2", "u0"]})})
    asked = extenders(preempts(), served=[served])
    assert await asked.process_preemption(pod("p"), {"b": ([V2, V0], 1)}) == {"b": ([V2, V0], 3)}


@pytest.mark.parametrize("by_node", [{"elsewhere": ["u0"]}, {"b": ["u0"]}])
async def test_invalid_answers_of_an_ignorable_extender_are_skipped(
    autojump_clock: MockClock, by_node: dict[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    served = PretendExtender(URL, {"preempt": victims(by_node)})
    asked = extenders(preempts(ignorable=True), served=[served])
    assert await asked.process_preemption(pod("p"), CANDIDATES) == CANDIDATES
    assert [record.message for record in caplog.records] == ["Extender failed"]


async def test_nodes_without_victims_are_dropped_for_an_ignorable_extender(autojump_clock: MockClock) -> None:
    served = PretendExtender(URL, {"preempt": victims({"a": [], "b": ["u2"]})})
    asked = extenders(preempts(ignorable=True), served=[served])
    assert await asked.process_preemption(pod("p"), CANDIDATES) == {"b": ([V2], 3)}


async def test_extenders_that_are_not_interested_are_not_called(autojump_clock: MockClock) -> None:
    served = PretendExtender(URL)
    gpu = preempts(managed_resources=(ManagedResource(name="example.com/gpu"),))
    filtering = Config(url_prefix=URL, filter_verb="filter")
    asked = extenders(gpu, filtering, served=[served])
    assert await asked.process_preemption(pod("p"), CANDIDATES) == CANDIDATES
    assert await extenders(preempts(), served=[served]).process_preemption(pod("p"), {}) == {}
    assert served.asked == []


# --- interest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "interested"),
    [
        (pod("p", cpu="1"), False),
        (pod("p", requests={"example.com/gpu": 1}), True),
        (pod("p", containers=[Container(resources=ResourceRequirements(limits={"example.com/gpu": "1"}))]), True),
        (pod("p", init_containers=[container(requests={"example.com/gpu": "1"})]), True),
        (pod("p", requests={"example.com/other": 1}), False),
    ],
)
async def test_an_extender_is_interested_in_pods_that_request_its_managed_resources(
    waiting: Pod, interested: bool
) -> None:
    managed = (ManagedResource(name="example.com/gpu"), ManagedResource(name="example.com/tpu"))
    config = Config(url_prefix=URL, filter_verb="filter", bind_verb="bind", managed_resources=managed)
    asked = extenders(config, served=[])
    assert asked.is_interested(waiting) is asked.binds(waiting) is interested


async def test_an_extender_without_verbs_is_never_interested() -> None:
    assert not extenders(Config(url_prefix=URL, bind_verb="bind"), served=[]).is_interested(pod("p"))
    assert not extenders(Config(url_prefix=URL, filter_verb="f"), served=[]).binds(pod("p"))
    for verb in ("filter_verb", "prioritize_verb", "preempt_verb"):
        assert extenders(Config(url_prefix=URL, **{verb: "v"}), served=[]).is_interested(pod("p"))


# --- log lines ------------------------------------------------------------------------------------------------------


async def test_log_lines_about_one_extender_are_limited_and_count_the_others(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    served = PretendExtender(URL, {"filter": leaving(lambda name: True)}, is_dead=True)
    config = Config(url_prefix=URL, filter_verb="filter", ignorable=True, node_cache_capable=True)
    (one,) = extenders(config, served=[served]).extenders
    for _ in range(25):
        with pytest.raises(ExtenderError):
            await one.filter(pod("p"), {"a": node("a")})
        await trio.sleep(1)
    served.is_dead, served.delay_seconds = False, 10
    await one.filter(pod("p"), {"a": node("a")})
    lines: list[Any] = caplog.records
    assert [(line.message, line.seconds, getattr(line, "suppressed", 0)) for line in lines] == [
        ("Extender failed", 0.0, 0),
        ("Extender failed", 0.0, 9),
        ("Extender failed", 0.0, 9),
        ("Extender is slow", 10.0, 4),
    ]
    assert lines[0].ignorable
    assert lines[0].err == f'Post "{URL}/filter": dial tcp extender.test:80: connect: connection refused'


# --- connection -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("https", "tls", "settings"),
    [
        (False, None, None),
        (True, None, TlsSettings(insecure_skip_verify=True)),
        (True, ExtenderTls(ca_file="ca"), TlsSettings(ca_file="ca")),
        (True, ExtenderTls(server_name="x"), TlsSettings(server_name="x", insecure_skip_verify=True)),
        (False, ExtenderTls(insecure=True), TlsSettings(insecure_skip_verify=True)),
        (False, ExtenderTls(ca_data=b"ca", cert_file="c"), TlsSettings(ca_data=b"ca")),
        (
            False,
            ExtenderTls(cert_file="c", key_data=b"k"),
            TlsSettings(client_certificate_file="c", client_key_data=b"k"),
        ),
    ],
)
def test_the_tls_configuration_decides_what_is_trusted_and_presented(
    https: bool, tls: ExtenderTls | None, settings: TlsSettings | None
) -> None:
    assert tls_settings(Config(enable_https=https, tls_config=tls)) == settings


async def test_unusable_certificates_fail_the_start() -> None:
    config = Config(url_prefix="https://x", tls_config=ExtenderTls(ca_file="/nonexistent"))
    with pytest.raises(ExtenderError, match="couldn't build extenders: open /nonexistent: no such file"):
        Extender.from_config(config)


# --- objects kept whole ---------------------------------------------------------------------------------------------


def test_nodes_are_kept_whole_only_if_an_extender_is_sent_them() -> None:
    unneeded = [Config(filter_verb="f", node_cache_capable=True), Config(bind_verb="b"), Config(preempt_verb="p")]
    assert node_kind(unneeded) is NODE_KIND
    for config in (Config(filter_verb="f"), Config(prioritize_verb="p")):
        assert node_kind([*unneeded, config]).keep_raw is not None


def test_pods_are_kept_whole_while_pending_and_as_victims_if_needed() -> None:
    waiting, running, foreign = pod("w"), pod("r", node_name="a"), pod("f", scheduler_name="other")

    def keeps_whole(*configs: Config) -> list[bool]:
        keep = pod_kind(configs).keep_raw
        assert keep is not None
        return [isinstance(keep(one, b"{}"), RawPod) for one in (waiting, running, foreign)]

    assert pod_kind([Config(bind_verb="b")]) is POD_KIND
    assert keeps_whole(Config(filter_verb="f", node_cache_capable=True)) == [True, False, True]
    assert keeps_whole(Config(preempt_verb="p", node_cache_capable=True)) == [True, False, True]
    assert keeps_whole(Config(preempt_verb="p")) == [True, True, True]


# --- explaining -----------------------------------------------------------------------------------------------------


async def test_for_an_explanation_each_says_what_it_refuses_until_one_fails(autojump_clock: MockClock) -> None:
    served = [
        PretendExtender("http://first.test", {"filter": leaving(lambda name: name != "a", "a is reserved")}),
        PretendExtender("http://second.test", is_dead=True),
        PretendExtender("http://third.test", {"filter": leaving(lambda _name: False)}),
    ]
    ignorable = [False, True, False]
    configs = [
        Config(url_prefix=one.url, filter_verb="filter", http_timeout_ns=SECOND_NS, ignorable=may_be)
        for one, may_be in zip(served, ignorable, strict=True)
    ]
    asked = extenders(*configs, served=served)
    found = await asked.verdicts(pod("p"), {"a": node("a"), "b": node("b")})
    # Those that may be ignored come last, and nothing is left for the second one.
    assert [(one.name, one.refused, one.problem) for one in found] == [
        ("http://first.test", {"a": "a is reserved"}, ""),
        ("http://third.test", {"b": ""}, ""),
    ]
    served[0].is_dead = True
    (failed,) = await asked.verdicts(pod("p"), {"a": node("a"), "b": node("b")})
    assert (failed.name, failed.refused, failed.is_ignorable) == ("http://first.test", {}, False)
    assert "connection refused" in failed.problem
