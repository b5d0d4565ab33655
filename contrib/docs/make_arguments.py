"""Writes docs/reference/arguments.md from the types of arguments: ``python -m contrib.docs.make_arguments``."""

from __future__ import annotations

from typing import Final

from contrib.docs.api_pages import ApiPage, Group
from trio_sched.plugin_api.expressions import __all__ as expressions

HEADER: Final = """\
# Arguments

What `pluginConfig` says about a plugin comes as an instance of its class `Args`: a class of attrs, a dataclass or a
`msgspec.Struct`, whose annotations and validators say what is allowed.

```python
# quiet.py
from typing import Literal

from attrs import field, frozen
from attrs import validators as v

from trio_sched.plugin_api import Duration, LabelSelector, WholeQuantity, hookimpl


@frozen(kw_only=True)
class Tier:
    name: str
    spare_memory: WholeQuantity = 0


@frozen(kw_only=True)
class QuietArgs:
    max_pods: int = field(default=10, validator=v.ge(1))
    \"\"\"How many pods a node may have; this text is in the JSON schema.\"\"\"
    mode: Literal["strict", "soft"] = "soft"
    refresh: Duration = 30.0
    pods: LabelSelector = field(factory=LabelSelector)
    tiers: tuple[Tier, ...] = ()


class Quiet:
    name = "Quiet"
    Args = QuietArgs

    def __init__(self, args: QuietArgs, handle):
        self.args = args

    @hookimpl
    def score(self, pod, nodes):
        return 100 - nodes.pod_count.clip(0, 100)
```

```yaml
# quiet.yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: Quiet}]
    pluginConfig:
      - name: Quiet
        args:
          maxPods: 20
          mode: strict
          refresh: 1m30s
          pods: {matchLabels: {app: web}}
          tiers: [{name: gold, spareMemory: 8Gi}]
```

Names are in camel case in the file: `max_pods` is `maxPods` there. A default that is mutable needs a factory. Without
`Args`, the constructor gets None, and the file must not say anything.

## Types

| annotation | in the file | in the plugin |
| --- | --- | --- |
| `int`, `float`, `str`, `bool`, `None` | a number, a text, true or false, null | the same; `true` is no number |
| `Literal["strict", "soft"]`, an `Enum` | one of the values | the value, the member |
| [`Duration`](#duration), `datetime.timedelta` | `90s`, `5m`, `1h30m`, a number of seconds | seconds, a timedelta |
| [`WholeQuantity`](#wholequantity) | `8Gi`, `500M`, `3` | whole units, bytes of memory for instance |
| [`MilliQuantity`](#milliquantity) | `500m`, `2` | thousandths, milli-CPU for instance |
| `datetime.time` | `22:30` | a time of day |
| `LabelSelector`, `NodeSelector`, `Taint`, `Toleration` | as in manifests | [the object](objects.md#selectors) |
| `tuple[X, ...]`, `list[X]`, `set[X]`, `frozenset[X]` | a list | the same |
| `tuple[X, Y]` | a list of two | the same |
| `dict[str, X]`, `Mapping[str, X]` | a mapping | a dict |
| another such class | a mapping | an instance |
| `X \\| Y` | either; classes are told apart by a `Literal` attribute, or by keys | the one that fits |
| `Annotated[int, msgspec.Meta(ge=1)]` | what keeps the constraint | the value |
| `Annotated[X, WrittenAs(…)]` | a notation of your own, see [`WrittenAs`](#writtenas) | what it makes of the text |
| `object`, `Any` | anything | texts, numbers, lists, dicts |

A class with an annotation that is not here is refused when it is loaded, with the path of the attribute.

## Errors

All problems are reported at once, each with its place, by `trio-sched check-config`, at the start and on a reload. An
attribute that does not exist is one, with the one that was probably meant. What a validator or the constructor of the
class raises as ValueError or TypeError is reported as the problem of that attribute, or of the class:

```text
quiet.yaml:11: profiles[0].pluginConfig[0].args.maxPods: must be >= 1: 0
quiet.yaml:12: profiles[0].pluginConfig[0].args.moed: unknown field; did you mean 'mode'?
```

`trio-sched plugins --schema Quiet` prints a JSON schema with descriptions, bounds and defaults; an editor completes and
checks the file with it. `metadata={"name": …}` and `{"description": …}` of an attrs field give it another name in the
file, and another text in the schema.

This page is made from the code: change `trio_sched/plugin_api/argument_types.py` and run `make docs`.
"""
EXPRESSIONS: Final = """\
Arguments may hold CEL: [how to use expressions in a plugin](../how_to/use_expressions_in_a_plugin.md). These are in
`trio_sched.plugin_api.expressions`, because they take a while to import.
"""
IN_TREE: Final = """\
The arguments of the plugins of Kubernetes as classes; [the configuration](configuration.md) has them as written.
Plugins that do the work of one of these may use its class as their `Args`.
"""
GROUPS: Final = (
    Group("Notations", ("Duration", "WholeQuantity", "MilliQuantity", "WrittenAs")),
    Group("Expressions", tuple(sorted(expressions)), EXPRESSIONS, module="trio_sched.plugin_api.expressions"),
    Group(
        "Arguments of the plugins of Kubernetes",
        (
            "DefaultPreemptionArgs",
            "DynamicResourcesArgs",
            "InterPodAffinityArgs",
            "NodeAffinityArgs",
            "NodeResourcesBalancedAllocationArgs",
            "NodeResourcesFitArgs",
            "PodTopologySpreadArgs",
            "ScoringStrategy",
            "UtilizationShapePoint",
            "VolumeBindingArgs",
        ),
        IN_TREE,
    ),
)
API_PAGE: Final = ApiPage("arguments.md", HEADER, GROUPS)

if __name__ == "__main__":
    API_PAGE.page.write()
