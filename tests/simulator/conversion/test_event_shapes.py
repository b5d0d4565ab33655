from simulator_api import Api

NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE = "/api/v1/namespaces/default/events"

SCHEDULED = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "p1.18e9fb050c51c34e", "namespace": "default"},
    "eventTime": "2026-11-21T06:18:45.583937Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-host",
    "action": "Binding",
    "reason": "Scheduled",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": "u", "apiVersion": "v1"},
    "note": "Successfully assigned default/p1 to n1",
    "type": "Normal",
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


async def test_an_event_of_the_new_kind_is_read_as_one_of_the_old(api: Api) -> None:
    await api("POST", NEW, SCHEDULED)
    event = await api("GET", f"{CORE}/p1.18e9fb050c51c34e")
    assert event["apiVersion"] == "v1"
    assert event["involvedObject"] == SCHEDULED["regarding"]
    assert event["message"] == "Successfully assigned default/p1 to n1"
    assert event["reportingComponent"] == "default-scheduler"
    assert event["source"] == {}
    assert event["firstTimestamp"] is None
    assert "note" not in event
    assert "regarding" not in event


async def test_converting_an_event_back_loses_nothing(api: Api) -> None:
    posted = await api("POST", NEW, SCHEDULED)
    assert await api("GET", f"{NEW}/p1.18e9fb050c51c34e") == posted
    assert {**posted, "metadata": SCHEDULED["metadata"]} == SCHEDULED


async def test_an_old_event_is_listed_as_a_new_one(api: Api) -> None:
    involved = {"kind": "Lease", "namespace": "default", "name": "l", "apiVersion": "coordination.k8s.io/v1"}
    body = {
        "metadata": {"name": "e"},
        "involvedObject": involved,
        "reason": "LeaderElection",
        "message": "a became leader",
        "source": {"component": "default-scheduler"},
        "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:01:00Z",
        "type": "Normal",
    }
    await api("POST", CORE, body)
    listing = await api("GET", NEW)
    (event,) = listing["items"]
    assert listing["apiVersion"] == "events.k8s.io/v1"
    assert event["regarding"] == involved
    assert event["note"] == "a became leader"
    assert event["deprecatedSource"] == {"component": "default-scheduler"}
    assert event["deprecatedCount"] == 2
    assert event["deprecatedLastTimestamp"] == "2026-01-01T00:01:00Z"


async def test_a_series_is_patched_in_the_new_shape(api: Api) -> None:
    await api("POST", NEW, SCHEDULED)
    series = {"count": 2, "lastObservedTime": "2026-11-21T06:19:45.583937Z"}
    patched = await api(
        "PATCH",
        f"{NEW}/p1.18e9fb050c51c34e",
        {"series": series},
        content_type="application/strategic-merge-patch+json",
    )
    assert patched["series"] == series
    assert patched["note"] == SCHEDULED["note"]


async def test_events_are_found_by_what_they_are_about(api: Api) -> None:
    await api("POST", NEW, SCHEDULED)
    selector = "involvedObject.name%3Dp1,involvedObject.namespace%3Ddefault,involvedObject.uid%3Du"
    assert len((await api("GET", f"{CORE}?fieldSelector={selector}"))["items"]) == 1
    assert (await api("GET", f"{CORE}?fieldSelector=involvedObject.name%3Dp2"))["items"] == []
    assert len((await api("GET", f"{NEW}?fieldSelector=regarding.name%3Dp1,reason%3DScheduled"))["items"]) == 1


async def test_an_event_without_a_time_of_its_own_lives_in_the_namespace_of_its_object(api: Api) -> None:
    involved = {"kind": "Pod", "namespace": "kube-system", "name": "p1"}
    status = await api("POST", CORE, {"metadata": {"name": "e"}, "involvedObject": involved}, expect=422)
    assert "does not match event.namespace" in status["message"]


async def test_a_new_event_needs_more_than_one_of_the_core_group(api: Api) -> None:
    status = await api("POST", NEW, {**SCHEDULED, "type": "Other", "eventTime": None}, expect=422)
    assert [cause["field"] for cause in status["details"]["causes"]] == ["eventTime", "type"]
