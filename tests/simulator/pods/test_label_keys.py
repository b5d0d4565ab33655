"""matchLabelKeys and mismatchLabelKeys become requirements of the selectors beside them."""

from typing import Any

import pytest

from trio_sched.simulator import ApiServer
from trio_sched.simulator.registry.lifecycle import create

LABELS = {"app": "web", "version": "1", "tier": "front"}


def stored_spec(spec: dict[str, Any], minor: int = 36, labels: dict[str, str] = LABELS) -> dict[str, Any]:
    """The spec of a new pod with *labels* as a server has stored it."""
    state = ApiServer(kubernetes_version=f"1.{minor}").state
    container = {"name": "c", "image": "app:1"}
    fields = {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": [container], **spec}}
    stored: dict[str, Any] = create(state, state.types.core("pods"), "default", fields).fields["spec"]
    return stored


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def requirement(key: str, operator: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [value]}


@pytest.mark.parametrize("which", ["podAffinity", "podAntiAffinity"])
def test_terms_of_affinity_select_the_values_of_the_pod_and_others(which: str) -> None:
    wanted = term(matchLabelKeys=["version", "missing"], mismatchLabelKeys=["tier"])
    spec = {
        "affinity": {
            which: {
                "requiredDuringSchedulingIgnoredDuringExecution": [wanted],
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": wanted}],
            }
        }
    }
    found = stored_spec(spec)["affinity"][which]
    expected = [requirement("version", "In", "1"), requirement("tier", "NotIn", "front")]
    (required,) = found["requiredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = found["preferredDuringSchedulingIgnoredDuringExecution"]
    assert required["labelSelector"]["matchExpressions"] == expected
    assert preferred["podAffinityTerm"] == required
    assert "matchExpressions" not in wanted["labelSelector"]
    assert stored_spec({"affinity": {which: found}})["affinity"][which] == found


@pytest.mark.parametrize(("minor", "merged"), [(33, False), (34, True)])
def test_constraints_of_spreading_do_since_1_34(minor: int, merged: bool) -> None:
    constraint = term(maxSkew=1, whenUnsatisfiable="DoNotSchedule", matchLabelKeys=["version"])
    (found,) = stored_spec({"topologySpreadConstraints": [constraint]}, minor)["topologySpreadConstraints"]
    added = [requirement("version", "In", "1")] if merged else None
    assert found["labelSelector"].get("matchExpressions") == added
