"""What is said of pods that the configuration of the scheduler keeps waiting."""

from pathlib import Path

from explained import explained, titles

from contrib.scenarios.manifests import node, pod

RULE = {"key": "team", "operator": "In", "values": ["a"]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [RULE]}]}}
ADDS_AFFINITY = {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": ADDED}}]}]}
DEAD_EXTENDER = {"extenders": [{"urlPrefix": "http://127.0.0.1:9/quota", "filterVerb": "filter"}]}


def test_the_affinity_that_a_profile_adds_is_named(tmp_path: Path) -> None:
    data = explained([node("n1"), pod()], tmp_path, "asked", configuration=ADDS_AFFINITY)
    assert data["cause"]["reasons"] == ["ProfileAffinityMismatch"]
    assert data["cause"]["clauses"] == ["node affinity of its profile: team=a"]
    assert titles(data) == ["label n1 team=a"]


def test_an_extender_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    data = explained([node("n1"), pod()], tmp_path, "asked", configuration=DEAD_EXTENDER)
    assert data["cause"]["reasons"] == ["ExtenderFailed"]
    assert "connection refused" in data["cause"]["text"]
    assert data["cause"]["clauses"] == ["extender http://127.0.0.1:9/quota"]
