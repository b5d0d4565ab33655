"""``/configz``: the configuration that is in effect, as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from attrs import define, field

from trio_sched.config.dump import configuration_tree
from trio_sched.config.schema import SchedulerConfig
from trio_sched.daemon.serving.messages import JSON, NOSNIFF, Request, Response
from trio_sched.documents.tree import Number
from trio_sched.go.text import json_text

_TOP: Final = (
    "kind",
    "apiVersion",
    "parallelism",
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
    "delayCacheUntilActive",
    "explainInCondition",
    "sharding",
)
_ORDERS: Final = {
    "leaderElection": (
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
    ),
    "clientConnection": ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"),
    "profiles": ("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"),
    "plugins": (
        "preEnqueue",
        "queueSort",
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "preBind",
        "bind",
        "postBind",
        "multiPoint",
        "placementGenerate",
        "placementScore",
        "podGroupPostFilter",
    ),
    "pluginConfig": ("name", "args"),
    "args": ("kind", "apiVersion"),
}
"""The order of the fields of kube-scheduler's types; what is not listed stands behind it as it comes."""
_SECRETS: Final = frozenset({"keyData"})


@define(eq=False)
class Configz:
    """The page."""

    config: Callable[[], SchedulerConfig]
    """Returns the configuration in force; a reload replaces it."""
    _shown: tuple[SchedulerConfig, bytes] | None = field(init=False, default=None)

    async def __call__(self, _request: Request) -> Response:
        """Answer any request with the configuration."""
        config = self.config()
        if self._shown is None or self._shown[0] is not config:
            tree = _in_order(configuration_tree(config), _TOP)
            self._shown = config, json_text({"componentconfig": tree}).encode()
        return Response(headers=[JSON, NOSNIFF], body=self._shown[1])


def _in_order(fields: dict[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    keys = [*(key for key in order if key in fields), *(key for key in fields if key not in order)]
    return {key: "--- REDACTED ---" if key in _SECRETS else _plain(fields[key], _ORDERS.get(key, ())) for key in keys}


def _plain(value: Any, order: tuple[str, ...]) -> Any:
    match value:
        case dict():
            return _in_order(value, order)
        case list() | tuple():
            return [_plain(item, order) for item in value]
        case Number():
            return json.loads(value.text)
        case _:
            return value
