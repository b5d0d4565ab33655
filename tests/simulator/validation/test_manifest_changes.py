"""Verdicts of kube-apiserver 1.36 on changes in manifests, and the field that is wrong."""

from manifest_changes import Change, changes

from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError


def refused_fields(change: Change) -> list[str]:
    try:
        check_manifests([Manifest(change.fields())])
    except ManifestError as error:
        return [problem.path for problem in error.problems]
    return []


def test_what_kube_apiserver_refuses_is_refused_for_the_same_field() -> None:
    found = [(change, refused_fields(change)) for change in changes()]
    assert len(found) > 100
    assert [
        (str(change), change.refused, fields)
        for change, fields in found
        if (change.refused not in fields if change.refused else fields)
    ] == []
