"""Writes docs/reference/api_versions.md from the table of kinds: ``python -m contrib.docs.make_api_versions``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from contrib.docs.pages import Page, table
from trio_sched.kube_client.versions.api_versions import VERSIONED

HEADER: Final = """\
# API versions

One trio-sched works with the API servers of Kubernetes 1.31 to 1.38. Most kinds are `v1` in all of them. The others are
read and written in the best version that the server serves; plugins see the same objects whatever the version.

This page is made from `trio_sched/kube_client/versions/api_versions.py` by `make docs`.
"""
FOOTER: Final = """\

On 1.35 there are no PodGroups: a Workload (`v1alpha1`) contains its pod groups, and pods name both in
`spec.workloadRef`, with a key for each copy of a group. With the gates on, such pods are in a pod group called after
the workload, the group and the key, `training:workers:0`, which exists as long as it has pods and the workload names
it. What is decided about it is what is decided about a PodGroup of 1.36. Nothing is written to the workload; events
about the group are about its workload.

1.36 does not know the field, nor those workloads: delete them before an upgrade, its kube-apiserver does not become
ready before that. Pods of 1.35 that wait for their gang are then scheduled one by one, as are those of a server that
serves no workloads.

## What was tested on which API server

| API server | resource claims | device taint rules | pod groups | mixed scenarios |
| --- | --- | --- | --- | --- |
| 1.31 | `v1alpha3` | not served | not served | yes, and upgraded to 1.32 and 1.33 |
| 1.32 | `v1beta1` | not served | not served | yes, and upgraded to 1.33 |
| 1.33 | `v1beta2` | `v1alpha3` | not served | yes, and upgraded to 1.34 |
| 1.34 | `v1` | `v1alpha3` | not served | yes, and upgraded to 1.35 and 1.36 |
| 1.35 | `v1` | `v1alpha3` | workloads of `v1alpha1` | yes, and upgraded to 1.36 |
| 1.36 | `v1` | `v1beta2` | `v1alpha2` | yes, and the same answers by kube-scheduler 1.36.2 |
| 1.37 | `v1` | `v1` | `v1beta1` | the simulator only |

The mixed scenarios are small clusters with volumes, devices, preemption, spreading, affinity, gangs and more; on a real
kube-apiserver pods are placed, and say why they are not, as the simulator has it of 1.36. `python -m
contrib.api_servers FOLDER` runs that, and tests of devices, gangs, leases and restarts, on every version whose
executables are in FOLDER, and upgrades each to the next one. Of device taint rules kube-scheduler 1.36 takes no notice,
so those were not compared. No kube-apiserver of 1.37 or 1.38 has been tried.

## How the version is found

The server is asked once at start which versions it serves, beside the first lists, for at most five seconds. If it does
not say, or says too little, the versions are tried one after the other. It is asked again when a version is no longer
there, when the connection was lost and found again, every three minutes while a kind is missing, and every ten minutes
at most while one is read in another version than the best. A watch goes on in
another version where it stopped: no object is reported deleted because its version went away. Only if the server says
that it serves none of the versions are the objects of the kind forgotten.

A kind that is missing, or that the scheduler may not read, is said once in the log, with what makes the server serve it
or `trio-sched rbac`, which prints the roles. Nothing waits for it. Roles name resources without versions, so the same
roles fit all servers.

## What is not the same

* A DeviceTaintRule of `v1alpha3` that selects by `deviceClassName` or by CEL `selectors`, which Kubernetes 1.33 to 1.35
  allow, is left out and logged: without that part of its selector it would taint other devices, too.
* A ResourceClaim of `v1alpha3` with `spec.controller`, which 1.31 has, is left out and logged: its driver allocates it.
  `suitableNodes` of a class is not read: it is for those claims.
* Plugins see pod groups as in `v1alpha2`: the condition is called `PodGroupScheduled` and `disruptionMode` is text.
  `v1alpha3` and `v1beta1` have `PodGroupInitiallyScheduled` and an object; that is what is written there.
"""


def text() -> str:
    """The whole page."""
    head = ("kinds", "versions, the best first", "what is different without", "what makes a server serve them")
    return "\n".join([HEADER, table(head, _rows()).rstrip(), FOOTER])


def _rows() -> Iterator[tuple[str, str, str, str]]:
    """A row for all kinds of a group that have everything else in common."""
    alike: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for (group, plural), row in VERSIONED.items():
        versions = ", ".join(f"`{one.name}`" for one in row.versions)
        alike[group, versions, row.cost, row.fix].append(plural)
    for (group, versions, cost, fix), plurals in alike.items():
        yield f"{', '.join(plurals)} (`{group}`)", versions, cost, fix


PAGE: Final = Page("api_versions.md", text)


if __name__ == "__main__":
    PAGE.write()
