"""Verdicts of kube-apiserver 1.36 on changes in manifests, and the field that is wrong."""

import pytest
from manifest_changes import Change, changes

from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError


@pytest.mark.parametrize("change", changes(), ids=str)
def test_what_kube_apiserver_refuses_is_refused_for_the_same_field(change: Change) -> None:
    found: list[str] = []
    try:
        check_manifests([Manifest(change.fields())])
    except ManifestError as error:
        found = [problem.path for problem in error.problems]
    assert change.refused in found if change.refused else found == []
