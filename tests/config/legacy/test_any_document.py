import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trio_sched.config.decode import Bool, Bytes, Duration, Float32, GoType, Integer, ListOf, Struct
from trio_sched.config.errors import ConfigError
from trio_sched.config.flag_overrides import FlagOverrides
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.legacy import Conversion, OldStart, convert_start, read_legacy_configuration
from trio_sched.config.legacy.policy_shape import POLICY
from trio_sched.config.legacy.retired_plugins import AVOID_PODS, NODE_LABEL, SPREADERS, STRATEGIES, VOLUME_LIMITS
from trio_sched.config.legacy.shapes import SHAPES
from trio_sched.config.parse import parse_configuration

PLUGINS = ["*", "Mine", AVOID_PODS, NODE_LABEL, *sorted(SPREADERS), *STRATEGIES, *sorted(VOLUME_LIMITS), *KNOWN_PLUGINS]
RULES = [
    "GeneralPredicates",
    "CheckVolumeBinding",
    "EvenPodsSpread",
    "LeastRequestedPriority",
    "SelectorSpreadPriority",
]
TEXTS = {
    "name": st.sampled_from([*PLUGINS, *RULES]),
    "provider": st.sampled_from(["DefaultProvider", "ClusterAutoscalerProvider", "x"]),
    "healthzBindAddress": st.sampled_from(["", ":0", "0.0.0.0:10251", "::1"]),
}
ARGUMENTS = [
    None,
    {},
    {"resources": [{"name": "cpu", "weight": 1}]},
    {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100}]},
    {"presentLabels": ["a"], "absentLabelsPreference": ["b"]},
    {"hardPodAffinityWeight": 3},
    {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [None]}}},
]


def values(type_: GoType, field: str = "") -> st.SearchStrategy[Any]:
    """Anything of *type_*, or null; lists and mappings are short."""
    match type_:
        case Struct():
            fields = {**type_.fields, **{name: t for part in type_.embedded.values() for name, t in part.items()}}
            known = {name: values(t, name) for name, t in fields.items() if name not in ("apiVersion", "kind")}
            some: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=known)
        case ListOf():
            some = st.lists(values(type_.item, field), max_size=2)
        case Bool():
            some = st.booleans()
        case Integer():
            some = st.integers(0, 3)
        case Float32():
            some = st.just(7.5)
        case Duration():
            return st.sampled_from(["1s", "15s"])
        case Bytes():
            some = st.just("Zm9v")
        case _ if field == "args":
            some = st.sampled_from(ARGUMENTS)
        case _ if field == "httpTimeout":
            some = st.sampled_from([1_000_000_000, "1s"])
        case _ if field == "tlsConfig":
            some = st.just({"Insecure": True})
        case _:
            some = TEXTS.get(field, st.sampled_from(["", "a", "b"]))
    return st.none() | some if field else some


def check_readable(conversion: Conversion) -> None:
    parse_configuration(conversion.text())
    parse_configuration(conversion.text_without_keys().replace("<not shown>", ""))


POLICIES = values(POLICY).map(lambda fields: json.dumps({"kind": "Policy", "apiVersion": "v1", **fields}))
CONFIGURATIONS = st.one_of(
    values(shape).map(lambda fields, v=version: {"apiVersion": v, "kind": "KubeSchedulerConfiguration", **fields})
    for version, shape in SHAPES.items()
)
MANY = settings(suppress_health_check=list(HealthCheck), deadline=None)


@MANY
@given(CONFIGURATIONS, POLICIES)
def test_every_configuration_becomes_one_that_v1_can_read_or_is_refused(fields: dict[str, Any], policy: str) -> None:
    legacy = read_legacy_configuration(json.dumps(fields))
    assert legacy is not None
    try:
        conversion = legacy.convert(policy if legacy.policy_source else None)
    except ConfigError:
        return
    check_readable(conversion)


@MANY
@given(POLICIES)
def test_every_policy_becomes_a_configuration_that_v1_can_read_or_is_refused(policy: str) -> None:
    try:
        conversion = convert_start(OldStart(policy=policy), FlagOverrides())
    except ConfigError:
        return
    check_readable(conversion)
