from collections.abc import Callable

import pytest

from trio_sched.config.errors import ConfigError
from trio_sched.config.expansion import Expanded
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.legacy import OldStart, convert_start
from trio_sched.config.load import load_configuration
from trio_sched.plugin_api.arguments import InterPodAffinityArgs

Expand = Callable[..., list[Expanded]]

POLICY = '{"kind": "Policy", "apiVersion": "v1", "priorities": [], "hardPodAffinitySymmetricWeight": %d}'


def test_both_providers_keep_their_weights_and_differ_in_how_they_score_resources(expand: Expand) -> None:
    standard = convert_start(OldStart(algorithm_provider="DefaultProvider"), FlagOverrides())
    packing = convert_start(OldStart(algorithm_provider="ClusterAutoscalerProvider"), FlagOverrides())
    assert expand(standard) == expand(packing)
    assert {ref.name: ref.weight for ref in expand(standard)[0]["score"]}["TaintToleration"] == 1
    assert "pluginConfig" not in standard.document["profiles"][0]
    (entry,) = packing.document["profiles"][0]["pluginConfig"]
    assert entry["args"]["scoringStrategy"] == {"type": "MostAllocated"}


def test_flags_that_a_file_would_outdo_get_into_the_document() -> None:
    flags = FlagOverrides(kubeconfig="/kube.conf", qps=7.5, burst=9, profiling=False, leader_elect=False)
    conversion = convert_start(OldStart(scheduler_name="mine"), flags)
    config = load_configuration(conversion.text())
    assert config.client_connection.kubeconfig == "/kube.conf"
    assert (config.client_connection.qps, config.client_connection.burst) == (7.5, 9)
    assert not config.enable_profiling
    assert config.leader_election.leader_elect  # that flag counts beside a file, too
    assert config.profiles[0].scheduler_name == "mine"


def test_without_a_policy_or_a_provider_todays_defaults_run(expand: Expand) -> None:
    conversion = convert_start(OldStart(hard_pod_affinity_weight=5, lock_object_name="l"), FlagOverrides())
    config = load_configuration(conversion.text())
    assert config.profiles[0].plugins == load_configuration(None).profiles[0].plugins
    assert config.profiles[0].arguments_of("InterPodAffinity") == InterPodAffinityArgs(hard_pod_affinity_weight=5)
    assert config.leader_election.resource_name == "l"


@pytest.mark.parametrize(("in_policy", "counts"), [(0, 5), (8, 8)])
def test_the_weight_in_a_policy_wins_over_the_flag(in_policy: int, counts: int) -> None:
    start = OldStart(policy=POLICY % in_policy, hard_pod_affinity_weight=5)
    (profile,) = load_configuration(convert_start(start, FlagOverrides()).text()).profiles
    assert profile.arguments_of("InterPodAffinity") == InterPodAffinityArgs(hard_pod_affinity_weight=counts)


def test_a_policy_outdoes_a_provider() -> None:
    start = OldStart(policy=POLICY % 0, algorithm_provider="ClusterAutoscalerProvider")
    conversion = convert_start(start, FlagOverrides())
    assert "MostAllocated" not in conversion.text()
    assert "--algorithm-provider: means nothing beside a policy, and never did" in conversion.notes


def test_asking_for_the_port_without_tls_is_refused_and_not_asking_is_not() -> None:
    with pytest.raises(ConfigError, match="--port: must be 0, not 10251: the port without TLS is gone"):
        convert_start(OldStart(port=10251), FlagOverrides())
    conversion = convert_start(OldStart(port=0, address="127.0.0.1", failure_domains="zone"), FlagOverrides())
    assert [note.partition(":")[0] for note in conversion.notes] == ["--port", "--address", "--failure-domains"]
