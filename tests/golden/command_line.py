"""What the replays of command lines and of configuration files share: placeholders for paths, and the kubeconfig."""

import json
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from attrs import frozen

KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
"""
CLUSTER_VARIABLES: Final = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""Of the environment; unset in every recording that does not set them."""


@frozen
class Places:
    """The paths behind the placeholders of one case."""

    paths: Mapping[str, str]

    def put(self, text: str) -> str:
        """*text* with the paths in it."""
        for placeholder, path in self.paths.items():
            text = text.replace(placeholder, path)
        return text

    def back(self, text: str) -> str:
        """*text* with the placeholders in it again; longer paths first, because one may begin with another."""
        for placeholder, path in sorted(self.paths.items(), key=lambda item: -len(item[1])):
            text = text.replace(path, placeholder)
        return text

    def back_in_tree(self, tree: Any) -> Any:
        """The same for the texts in a parsed document."""
        return json.loads(self.back(json.dumps(tree)))

    def write(self, placeholder: str, content: str) -> None:
        """Write the file, line ends untouched."""
        Path(self.paths[placeholder]).write_bytes(content.encode())


def difference(wanted: Any, got: Any, path: str = "") -> str:
    """The first place where two parsed documents differ, and what stands there."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in sorted(wanted.keys() | got.keys()):
            if wanted.get(key, ...) != got.get(key, ...):
                return difference(wanted.get(key, ...), got.get(key, ...), f"{path}.{key}")
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (left, right) in enumerate(zip(wanted, got, strict=True)):
            if left != right:
                return difference(left, right, f"{path}[{index}]")
    return f"at {path or 'the top'} expected {wanted!r}, got {got!r}"


def text_difference(wanted: str, got: str) -> str:
    """The first line in which two texts differ."""
    for number, (left, right) in enumerate(zip_longest(wanted.splitlines(), got.splitlines()), start=1):
        if left != right:
            return f"line {number}: expected {left!r}, got {right!r}"
    return "they differ in their last line end"
