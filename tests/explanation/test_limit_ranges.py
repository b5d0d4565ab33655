"""Changes of requests are those that the LimitRanges of the namespace allow."""

from typing import Any

import pytest
from filled_scheduler import scheduler_with
from msgspec import convert, structs

from trio_sched.explanation.commands import commands
from trio_sched.explanation.explanation import Explanation, explain
from trio_sched.explanation.limit_ranges import KIND, refusals
from trio_sched.objects.limit_range import LimitRange
from trio_sched.objects.pod import Container, Pod
from trio_sched.testing import node, pod


def ranges(*items: dict[str, Any]) -> LimitRange:
    metadata = {"name": "limits", "namespace": "default"}
    return convert({"metadata": metadata, "spec": {"limits": list(items)}}, LimitRange)


def asked(*containers: dict[str, Any], **spec: Any) -> Pod:
    made = pod("asked")
    listed = [{"name": f"c{number}", "resources": one} for number, one in enumerate(containers)]
    changed = {"containers": convert(listed, tuple[Container, ...]), **spec}
    return structs.replace(made, spec=structs.replace(made.spec, **changed))


def explained(one: Pod, limits: LimitRange | None, **amounts: Any) -> Explanation:
    scheduler = scheduler_with([node("n1", **amounts)], [])
    if limits is not None:
        scheduler.object_cache.add_kind(KIND)
        scheduler.object_cache.put(KIND, limits.name, limits.namespace, limits)
    return explain(scheduler, one)


def requests_and_limits(found: Explanation) -> list[tuple[Any, Any]]:
    (edited,) = (one for one in found.remedies.found[0].edited if one.kind == "Pod")
    return [(one.resources.requests, one.resources.limits) for one in edited.new.spec.containers]


def test_no_container_gets_less_than_the_minimum_while_another_has_more() -> None:
    one = asked({"requests": {"memory": "3Gi"}}, {"requests": {"memory": "1536Mi"}})
    found = explained(one, ranges({"type": "Container", "min": {"memory": "1Gi"}}), memory="2Gi")
    assert found.remedies.found[0].change.title == "request memory ≤ 2.0Gi"
    assert requests_and_limits(found) == [({"memory": "1Gi"}, None), ({"memory": "1Gi"}, None)]
    assert found.remedies.refused == []


def test_the_minimum_of_a_whole_pod_stands_in_the_way() -> None:
    one = asked({"requests": {"cpu": "3", "memory": "1Gi"}})
    found = explained(one, ranges({"type": "Pod", "min": {"cpu": "2"}}), cpu="1")
    assert found.remedies.refused == ["LimitRange limits refuses cpu of less than 2 per pod"]
    remedy = found.remedies.found[0]
    assert remedy.change.title == "lower the minimum of the LimitRange limits and request cpu ≤ 1"
    lowered, resized = commands(remedy.edited, one, None)
    assert "patch limitrange limits" in lowered
    assert '{"type":"Pod","min":{"cpu":"1"}}' in lowered
    assert "--subresource=resize" in resized


def test_what_else_admission_would_refuse_of_the_pod_by_now_is_put_right_with_it() -> None:
    one = asked({"requests": {"cpu": "100m", "memory": "4Gi"}, "limits": {"cpu": "1"}})
    limits = ranges({"type": "Container", "min": {"cpu": "200m"}, "maxLimitRequestRatio": {"cpu": "4"}})
    found = explained(one, limits, cpu="1", memory="1Gi")
    assert found.remedies.found[0].change.title == "request memory ≤ 1.0Gi and request cpu 200m and limit cpu 800m"
    assert requests_and_limits(found) == [({"cpu": "200m", "memory": "1Gi"}, {"cpu": "800m"})]


def test_a_pod_that_is_made_again_with_other_fields_is_asked_about_as_well() -> None:
    one = asked({"requests": {"cpu": "100m"}}, node_selector={"disk": "ssd"})
    found = explained(one, ranges({"type": "Container", "min": {"cpu": "200m"}}), cpu="1")
    assert "no node selector disk=ssd and request cpu 200m" in [each.change.title for each in found.remedies.found]
    assert "no node selector disk=ssd" not in [each.change.title for each in found.remedies.found]


def test_what_a_new_pod_gets_by_default_counts() -> None:
    """The pod is older than the LimitRange."""
    one = asked({"requests": {"cpu": "100m"}}, node_selector={"disk": "ssd"})
    item = {"type": "Container", "min": {"memory": "1Gi"}, "defaultRequest": {"memory": "2Gi"}}
    found = explained(one, ranges(item), cpu="1", memory="4Gi")
    assert "no node selector disk=ssd" in [each.change.title for each in found.remedies.found]
    assert refusals(one, [ranges({"type": "Container", "min": {"memory": "1Gi"}})]) != []


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ({"min": {"cpu": "200m"}}, "cpu of less than 200m per container"),
        ({"min": {"memory": "1"}}, "no request for memory per container"),
        ({"max": {"cpu": "50m"}}, "cpu of more than 50m per container"),
        ({"max": {"memory": "1Gi"}}, "no limit for memory per container"),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, "a limit for cpu of more than 2 times its request per container"),
        ({"maxLimitRequestRatio": {"memory": "2"}}, "no request or no limit for memory per container"),
    ],
)
def test_every_rule_is_named(item: dict[str, Any], problem: str) -> None:
    one = asked({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}})
    assert refusals(one, [ranges({"type": "Container", **item})]) == [f"LimitRange limits refuses {problem}"]
    assert refusals(one, [ranges({"type": "PersistentVolumeClaim", **item})]) == []


def test_where_limit_ranges_are_not_known_a_note_says_so() -> None:
    one = asked({"requests": {"cpu": "3"}})
    (note,) = explained(one, None, cpu="1").notes
    assert "LimitRanges are not known here" in note
