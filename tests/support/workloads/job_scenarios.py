"""How Jobs count their pods: policies of success and failure, indexes, sizes that change; Jobs beside a CronJob."""

import trio
from workload_parts import HUGE, ending, has, lacks, scenario, selector, template
from workload_worlds import MERGE, Place

INDEX = "batch.kubernetes.io/job-completion-index"
NEVER = {"restartPolicy": "Never"}


async def end(at: Place, name: str, index: int, code: int = 0) -> None:
    """Let the pod of an index end, and wait until it has."""
    (pod,) = _running(at, name, index)
    await at.send("PATCH", at.path("pods", pod), {"metadata": {"annotations": ending(0, code)}}, **MERGE)
    while pod in _running(at, name, index):  # noqa: ASYNC110 - a mirror has no trio.Event for it
        await trio.sleep(0.1)


def _running(at: Place, name: str, index: int) -> list[str]:
    """The running pods of an index of a Job."""
    return [
        one["metadata"]["name"]
        for one in at.pods(app=name)
        if one["status"]["phase"] == "Running" and one["metadata"]["annotations"][INDEX] == str(index)
    ]


@scenario
async def indexed_jobs(at: Place) -> None:
    await at.begin(nodes=2)
    indexed = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    first = {"rules": [{"succeededIndexes": "0"}]}
    await at.make("jobs", "enough", **indexed, successPolicy=first, template=template(app="enough", **NEVER))
    await at.make("jobs", "elastic", **indexed, template=template(app="elastic", **NEVER))
    await at.make("jobs", "shrinks", **indexed, template=template(app="shrinks", **NEVER))
    await at.make("jobs", "failing", **indexed, backoffLimit=0, template=template(app="failing", **NEVER))
    per_index = {"backoffLimitPerIndex": 1, "podReplacementPolicy": "Failed"}
    await at.make("jobs", "by-index", **indexed, **per_index, template=template(app="by-index", **NEVER))
    await at.reach("run", until=has("ready=3"))
    await end(at, "enough", 0)
    await end(at, "elastic", 0)
    await end(at, "shrinks", 0)
    await end(at, "shrinks", 2)
    await end(at, "failing", 1, 1)
    await end(at, "by-index", 1, 1)
    await at.patch("jobs", "by-index", suspend=True)  # before it takes the place of the pod that has failed
    await at.reach("some pods have ended", until=has("jobs failing: Failed=True"))
    await at.patch("jobs", "elastic", completions=1, parallelism=1)
    await at.patch("jobs", "shrinks", completions=2, parallelism=2)
    await at.reach("with fewer indexes")
    await at.patch("jobs", "by-index", suspend=False)
    await at.reach("resumed", within_seconds=40, until=has("jobs by-index: active=3, Suspended=False"))
    await end(at, "by-index", 1, 1)
    await end(at, "by-index", 0)
    await end(at, "by-index", 2)
    await at.reach("an index is lost", until=has("Warning FailedIndexes"))


@scenario
async def unexpected_jobs(at: Place) -> None:
    await at.begin(nodes=1)
    made = await at.make(
        "cronjobs",
        "yearly",
        schedule="0 0 1 1 *",
        concurrencyPolicy="Forbid",
        successfulJobsHistoryLimit=0,
        jobTemplate={"spec": {"template": template(**NEVER)}},
    )
    await at.reach("created")
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "yearly", "uid": made.json()["metadata"]["uid"]}
    for name, annotations in (("long", None), ("short", ending(1))):
        metadata = {"ownerReferences": [{**owner, "controller": True}]}
        await at.make("jobs", name, metadata=metadata, template=template(app=name, annotations=annotations, **NEVER))
    await at.reach("Jobs that it did not create", until=lacks("short: active", "pods of Job short"))
    await at.delete("cronjobs", "yearly", "Foreground")
    await at.reach("deleted", until=lacks("cronjobs", "jobs of", "pods of"))


@scenario
async def failed_budgets(at: Place) -> None:
    await at.begin(nodes=1)
    await at.make("jobs", "job", backoffLimit=9, template=template(app="job", **NEVER))
    await at.make("deployments", "web", replicas=2, selector=selector(), template=template())
    await at.reach("pods")
    await at.make("poddisruptionbudgets", "job", maxUnavailable=1, selector=selector("job"))
    await at.make("poddisruptionbudgets", "web", maxUnavailable=1, selector=selector())
    await at.reach("one budget has no status")
    await at.evict(at.pods(app="job")[0]["metadata"]["name"])
    await at.evict(at.pods(app="app")[0]["metadata"]["name"])
    await at.reach("and allows nothing")
    await at.make("poddisruptionbudgets", "other", minAvailable=1, selector=selector())
    await at.reach("a second budget")
    await at.evict(at.pods(app="app")[0]["metadata"]["name"])
    await at.reach("several budgets allow nothing either")


@scenario
async def unscheduled_jobs(at: Place) -> None:
    await at.begin(nodes=1)
    for name, policy in (("eager", "TerminatingOrFailed"), ("patient", "Failed")):
        large = template(app=name, cpu=HUGE, **NEVER)
        await at.make("jobs", name, podReplacementPolicy=policy, backoffLimit=3, template=large)
    held = {"finalizers": ["example.com/held"], "labels": {"app": "held"}}
    await at.make("pods", "held", metadata=held, **template(cpu=HUGE)["spec"])
    await at.reach("pods that fit nowhere", until=has("pods of Job patient: Pending", "pods held: Pending"))
    for name in ("eager", "patient", "held"):
        await at.delete("pods", at.pods(app=name)[0]["metadata"]["name"])
    replaced = has("pods of Job patient: Pending", "jobs patient: active=1, failed=1", "pods held: terminating Failed")
    await at.reach("deleted", until=replaced, within_seconds=60)
