"""The result of a conversion: a v1 document, its text, and the list of changes."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from attrs import frozen

from trio_sched.config.dump import write_yaml
from trio_sched.config.durations import parse_duration
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy.values import without_empty
from trio_sched.config.wire_types import API_VERSION, CONFIGURATION_KIND
from trio_sched.documents.tree import Number

_DEFAULTS: Final[Mapping[str, Any]] = {
    "parallelism": 16,
    "percentageOfNodesToScore": 0,
    "podInitialBackoffSeconds": 1,
    "podMaxBackoffSeconds": 10,
    "enableProfiling": True,
    "delayCacheUntilActive": False,
    "leaderElection": {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    },
    "clientConnection": {
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "kubeconfig": "",
        "qps": 50,
        "burst": 100,
    },
}
_ORDER: Final = (
    "clientConnection",
    "leaderElection",
    "enableProfiling",
    "enableContentionProfiling",
    "parallelism",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "delayCacheUntilActive",
    "profiles",
    "extenders",
)
_HIDDEN: Final = "<not shown>"


@frozen(kw_only=True)
class Conversion:
    """A legacy configuration in v1."""

    source: str
    """What was converted: an ``apiVersion``, a policy, an algorithm provider."""
    document: Mapping[str, Any]
    """The v1 document, without fields that have their default."""
    notes: tuple[str, ...]
    """The changes: a sentence each, which begins with the path in the old document."""

    def text(self) -> str:
        """The document as YAML: the configuration file to use from now on."""
        return write_yaml(self.document, in_order=True)

    def text_without_keys(self) -> str:
        """The v1 text without secrets: private keys of extenders are left out."""
        document = deepcopy(dict(self.document))
        for extender in filter(None, document.get("extenders", ())):
            if "keyData" in (extender.get("tlsConfig") or {}):
                extender["tlsConfig"]["keyData"] = _HIDDEN
        return write_yaml(document, in_order=True)


def v1_document(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The v1 document of *fields*, without those that have their default, general settings first."""
    known = {key: _beyond_default(fields[key], _DEFAULTS.get(key)) for key in _ORDER if key in fields}
    return {"apiVersion": API_VERSION, "kind": CONFIGURATION_KIND, **without_empty(known)}


def _beyond_default(value: Any, default: Any) -> Any:
    """*value* without what is *default*; None if nothing is left."""
    if isinstance(value, dict) and isinstance(default, Mapping):
        return without_empty({key: _beyond_default(item, default.get(key)) for key, item in value.items()})
    return None if default is not None and _same(value, default) else value


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, Number):
        return not isinstance(default, bool) and value.value == default
    if isinstance(value, str) and isinstance(default, str) and value != default:
        try:
            return parse_duration(value) == parse_duration(default)
        except ConfigError:
            return False
    return type(value) is type(default) and bool(value == default)
