"""Verdicts of kube-apiserver 1.36 on PUTs of ``/status``, recorded with dry runs: random statuses of valid objects."""

import gzip
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def recorded_statuses() -> dict[str, dict[str, list[Json]]]:
    """Kind and name of an object of ``valid_manifests.yaml`` → ``accepted`` and ``refused`` → statuses."""
    content = Path(__file__).with_name("status_verdicts.json.gz").read_bytes()
    recorded: dict[str, dict[str, list[Json]]] = json.loads(gzip.decompress(content))
    return recorded
