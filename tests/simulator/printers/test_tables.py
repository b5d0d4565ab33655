from datetime import UTC, datetime
from typing import Any

import pytest
from simulator_api import Api

from trio_sched.documents.json_values import Json
from trio_sched.simulator.printers.ages import human_duration
from trio_sched.simulator.printers.tables import table_columns, table_row
from trio_sched.simulator.storage.resource_types import TypeRegistry

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
BORN = "2026-01-01T00:00:00Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (185, "3m5s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (9 * 3600, "9h"),
        (50 * 3600, "2d2h"),
        (10 * 86400, "10d"),
        (3 * 365 * 86400, "3y"),
    ],
)
def test_ages_are_written_as_by_kubectl(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def row(plural: str, fields: Json) -> dict[str, Any]:
    resource = next(one for one in TypeRegistry() if one.qualified == plural)
    names = [column["name"] for column in table_columns(resource)]
    metadata = {"name": "x", "creationTimestamp": BORN, **fields.pop("metadata", {})}
    cells = table_row(resource, {"metadata": metadata, **fields}, NOW)
    return dict(zip(names, cells, strict=True))


def test_a_running_pod_shows_its_node_and_readiness() -> None:
    shown = row(
        "pods",
        {
            "spec": {"nodeName": "n1", "containers": [{}, {}]},
            "status": {
                "phase": "Running",
                "podIP": "10.1.1.1",
                "containerStatuses": [{"ready": True, "restartCount": 2}, {"ready": False}],
            },
        },
    )
    assert shown == {
        "Name": "x",
        "Ready": "1/2",
        "Status": "Running",
        "Restarts": "2",
        "Age": "60m",
        "IP": "10.1.1.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


@pytest.mark.parametrize(
    ("metadata", "status", "shown"),
    [
        ({}, {"phase": "Pending"}, "Pending"),
        ({}, {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}, "SchedulingGated"),
        ({}, {"containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}]}, "Completed"),
        ({"deletionTimestamp": BORN}, {"phase": "Running"}, "Terminating"),
    ],
)
def test_the_status_column_is_one_word(metadata: Json, status: Json, shown: str) -> None:
    assert row("pods", {"metadata": metadata, "spec": {}, "status": status})["Status"] == shown


def test_a_node_shows_its_roles_and_whether_it_takes_pods() -> None:
    shown = row(
        "nodes",
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": ""}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.36.2"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
            },
        },
    )
    assert shown["Status"] == "Ready,SchedulingDisabled"
    assert shown["Roles"] == "gpu,worker"
    assert shown["Version"] == "v1.36.2"
    assert shown["Internal-IP"] == "10.0.0.7"


def test_an_event_that_repeats_says_how_often_and_over_how_long() -> None:
    shown = row(
        "events",
        {
            "involvedObject": {"kind": "Pod", "name": "p"},
            "eventTime": BORN,
            "series": {"count": 4, "lastObservedTime": "2026-01-01T00:59:00.5Z"},
            "reportingComponent": "default-scheduler",
        },
    )
    assert shown["Last Seen"] == "59s (x4 over 60m)"
    assert shown["Object"] == "pod/p"
    assert shown["Source"] == "default-scheduler"


def test_every_kind_has_as_many_cells_as_columns_even_when_nearly_empty() -> None:
    fields = {"metadata": {"name": "x", "creationTimestamp": BORN}, "spec": {}}
    cells = {one: (len(table_row(one, fields, NOW)), len(table_columns(one))) for one in TypeRegistry()}
    assert {one.qualified: counts for one, counts in cells.items() if counts[0] != counts[1]} == {}


@pytest.mark.parametrize(("include", "has"), [("None", None), ("Metadata", "PartialObjectMetadata"), ("Object", "Pod")])
async def test_rows_carry_as_much_of_their_object_as_asked(api: Api, include: str, has: str | None) -> None:
    await api.create_pod("p")
    table = await api("GET", f"/api/v1/pods?includeObject={include}", accept=TABLE)
    assert table["kind"] == "Table"
    (shown,) = table["rows"]
    assert shown.get("object", {}).get("kind") == has


def test_daemon_sets_and_cron_jobs_are_counted() -> None:
    counts = {"desiredNumberScheduled": 3, "currentNumberScheduled": 2, "numberReady": 1}
    template = {"spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"name": "c", "image": "i"}]}}
    shown = row("daemonsets.apps", {"spec": {"template": template}, "status": counts})
    assert [shown[name] for name in ("Desired", "Current", "Ready", "Up-to-date", "Node Selector", "Images")] == [
        *(3, 2, 1, 0),
        *("disk=ssd", "i"),
    ]
    job = {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}
    shown = row("cronjobs.batch", {"spec": job, "status": {"active": [{}], "lastScheduleTime": BORN}})
    assert [shown[name] for name in ("Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Containers")] == [
        *("@daily", "<none>", "False", 1),
        *("60m", "c"),
    ]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "pending"),
        ({"allocation": {"devices": {}}}, "allocated"),
        ({"allocation": {"devices": {}}, "reservedFor": [{}]}, "allocated,reserved"),
    ],
)
def test_resource_claims_show_their_state(status: Any, state: str) -> None:
    assert row("resourceclaims.resource.k8s.io", {"status": status})["State"] == state


def test_quotas_show_what_is_used_of_requests_and_limits() -> None:
    status = {"hard": {"pods": "5", "limits.cpu": "2"}, "used": {"pods": "1"}}
    shown = row("resourcequotas", {"status": status})
    assert (shown["Request"], shown["Limit"]) == ("pods: 1/5", "limits.cpu: 0/2")


def test_pod_groups_show_their_policy_and_state() -> None:
    condition = {"type": "PodGroupScheduled", "status": "True"}
    group = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}, "status": {"conditions": [condition]}}
    shown = row("podgroups.scheduling.k8s.io", group)
    assert (shown["Policy"], shown["Workload"], shown["Status"]) == ("Gang", "<none>", "Scheduled")
