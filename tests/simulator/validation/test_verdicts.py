"""Verdicts of kube-apiserver 1.36 on every mistake in ``manifest_mutations``, recorded with dry runs.

``verdicts.json.gz`` has for each object a character per mistake: 1 it was accepted, 0 it was refused, ? it cannot be
compared, since the server looked at other objects or failed.
"""

import gzip
import json
from pathlib import Path
from typing import Final

import msgspec
import pytest
from manifest_mutations import mistakes, valid_objects

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError

RECORDED: Final[dict[str, str]] = json.loads(gzip.decompress(Path(__file__).with_name("verdicts.json.gz").read_bytes()))
DIFFERENT: Final = {
    "LimitRange limits: metadata.name": "the API server gives limit ranges without a name a random one",
    "Pod web: spec.serviceAccountName": "it was recorded without the admission plugin that sets the service account",
    "ResourceClaim claim: spec.devices.constraints.0.matchAttribute": "of a/b/c the API server looks at a and b only",
}
"""Verdicts that are others on purpose, by the object and the field."""


def is_accepted(fields: Json) -> bool:
    try:
        check_manifests([Manifest(msgspec.json.decode(msgspec.json.encode(fields)))])  # a copy, at a tenth of the time
    except ManifestError:
        return False
    return True


@pytest.mark.parametrize("fields", valid_objects(), ids=lambda fields: f"{fields['kind']} {fields['metadata']['name']}")
def test_what_kube_apiserver_refuses_is_refused_and_nothing_else(fields: Json) -> None:
    key = f"{fields['kind']} {fields['metadata']['name']}"
    assert is_accepted(fields)
    found = list(mistakes(fields))
    assert len(found) == len(RECORDED[key])
    wrong = [
        one.what
        for one, verdict in zip(found, RECORDED[key], strict=True)
        if verdict != "?"
        and is_accepted(one.fields) != (verdict == "1")
        and f"{key}: {one.what.split(' ')[0]}" not in DIFFERENT
    ]
    assert wrong == []
