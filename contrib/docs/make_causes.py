"""Writes docs/reference/causes.md from clusters with a pending pod each: ``python -m contrib.docs.make_causes``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Never

import trio

from contrib.docs.pages import Page, table
from contrib.scenarios.pending_causes import CAUSES, PendingCause
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.explanation.text import Layout, explanation_text
from trio_sched.simulation.asked_pods import Name
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.explaining import Question, explain_manifests

REASONS: Final[dict[str, dict[str, str]]] = {
    "Resources": {
        "InsufficientCPU": "No node that suits it otherwise has as much CPU free as it requests.",
        "InsufficientMemory": "No node that suits it otherwise has as much memory free as it requests.",
        "InsufficientEphemeralStorage": "No node that suits it otherwise has as much ephemeral storage free.",
        "InsufficientHugePages": "No node that suits it otherwise has as many huge pages of that size free.",
        "InsufficientExtendedResource": "Nodes offer the extended resource, and too little of it is free.",
        "ResourceNotOffered": "No node offers the resource, or some do not; a name much like it may be meant.",
        "TooManyPods": "The nodes run as many pods as they may (`status.allocatable.pods`).",
    },
    "Nodes": {
        "UntoleratedTaint": "The nodes have a taint that the pod does not tolerate.",
        "NodeCordoned": "The nodes are cordoned: `kubectl cordon` or `drain` was there.",
        "NodeSelectorMismatch": "The nodes lack a label of `spec.nodeSelector`.",
        "ProfileAffinityMismatch": "The configuration adds a node affinity to the pods of the profile.",
        "NodeAffinityMismatch": "The nodes do not match the required node affinity.",
        "HostPortInUse": "Other pods on the nodes have the host port.",
        "FeatureNotDeclared": "The kubelets of the nodes do not declare a feature that the pod uses.",
        "NoNodes": "The cluster has no nodes, or none that the scheduler sees.",
    },
    "Other pods": {
        "TopologySpread": "The domains of the nodes have too many matching pods for `maxSkew`, or are fewer than "
        "`minDomains`.",
        "TopologyKeyMissing": "No node has the label that a topology spread constraint counts by.",
        "PodAffinityMismatch": "No pod that it must be near to runs in the domains of the nodes.",
        "PodAntiAffinityMismatch": "A pod that it must not be near to runs in the domains of the nodes.",
        "ExistingPodsAntiAffinity": "A running pod there has a required anti-affinity that matches this pod.",
        "KeptForNominatedPods": "It fits, but not besides the pods that are nominated to the nodes.",
        "PodGroupNotFound": "The pod group that it names does not exist.",
        "WorkloadNotFound": "The workload of 1.35 that it names does not exist, or has no such pod group.",
        "GangIncomplete": "The gang has fewer pods than it needs to start.",
        "GangDoesNotFit": "Each pod of the group fits by itself, but not as many at once as it needs.",
        "GangDoesNotFitInPlacement": "The same, where all of them have to be in one domain of the group's topology.",
        "TreeNotWhole": "The tree that the pod's group is in lacks a parent, has a circle or too many levels.",
        "TreeIncomplete": "Too few child groups of a composite group have the pods that they need to start.",
        "TreeDoesNotFit": "The group fits by itself, but not as many groups of its tree at once as it needs.",
        "TreeDoesNotFitInPlacement": "The same, where all of them have to be in one domain of the tree's topology.",
        "TakenByPodGroup": "It fits by itself, but other pods of its group come first and leave it no node.",
    },
    "Volumes": {
        "ClaimNotFound": "The persistent volume claim does not exist in the namespace of the pod.",
        "ClaimUnbound": "The claim needs a volume before the pod is scheduled, and has none.",
        "VolumeNotMade": "It has a place, and waits for the volume of a claim that a provisioner is to make there.",
        "ClaimOfAnother": "The claim of an ephemeral volume was there before, and belongs to another pod or to nobody.",
        "ClaimIsBeingDeleted": "The claim is being deleted.",
        "ClaimLost": "The claim was bound to a volume that is gone.",
        "ClaimInUse": "The claim is ReadWriteOncePod, and another pod uses it.",
        "StorageClassNotFound": "The storage class that the claim names does not exist.",
        "NoVolumeForClaim": "No free volume suits the claim on the nodes, and none can be made there.",
        "VolumeNotFound": "The volume that the claim names does not exist.",
        "VolumeNodeAffinity": "The volume can be used on other nodes only.",
        "VolumeZoneMismatch": "The labels of the volume say another zone.",
        "DiskInUse": "A disk of an in-tree volume is mounted by another pod on the nodes, and can be mounted once.",
        "TooManyVolumes": "A node has, with those of the pod, more volumes of a CSI driver than its CSINode allows.",
    },
    "Devices": {
        "ResourceClaimNotFound": "The resource claim does not exist, or is not made yet from its template.",
        "ResourceClaimTemplateNotFound": "The template does not exist that the resource claim is to be made from.",
        "ResourceClaimIsBeingDeleted": "The resource claim is being deleted.",
        "ResourceClaimElsewhere": "The devices that the claim has can be used on other nodes only.",
        "DeviceClassNotFound": "The device class that the claim names does not exist.",
        "NoSuchDevices": "The nodes never have a device that the claim could get; others have some.",
        "DeviceSelectorFails": "A selector of the claim or its class fails for a device, which may lack an attribute.",
        "NoDevices": "The nodes have too few free devices that the class and the selectors of the claim take.",
    },
    "The pod itself": {
        "NodeNotFound": "Its `spec.nodeName` is that of no node, so no kubelet runs it.",
        "PodIsBeingDeleted": "The pod itself is being deleted; no scheduler places it any more.",
        "SchedulingGated": "The pod has scheduling gates; whatever has set them has to remove them.",
        "ExtenderRefuses": "An extender of the configuration leaves out the nodes that the plugins accept.",
        "ExtenderFailed": "An extender has a say in the pod, and could not be asked.",
        "UnknownScheduler": "No scheduler has the name that is in `spec.schedulerName`.",
        "FitsNow": "Nothing keeps it pending any more: it was not tried since, or its turn has not come.",
    },
    "Plugins": {
        "RejectedBy…": "The plugin of that name rejects it, and says no more than the text of its status; "
        "`RejectedByQuietZone` for instance.",
        "PluginFailed…": "The plugin of that name failed when it was asked.",
        "PluginFailed": "The decision ended with an error of a plugin, and no requirement is known that is not met.",
    },
}
"""Heading → code of a cause → what it means. The codes are those of the built-in plugins and of explain itself."""

HEADER: Final = """\
# Causes of pending pods

What [`trio-sched explain`](../how_to/debug_a_pending_pod.md) says of pods that are pending: the codes of the causes,
and for most of them what it prints. `-o json` has the codes in `cause.reasons` and in the `reason` of each of the
`clauses`; they do not change, texts may.
Other people's plugins have codes of their own, if they [explain what they ask
for](../how_to/explain_what_your_plugin_asks_for.md).

This page is made by running the code on the clusters in `contrib/scenarios/pending_causes/`: change those, or
`contrib/docs/make_causes.py`, and run `make docs`.

## In JSON

```sh
trio-sched explain deployment/web -n shop -o json | jq -r '.explanations[0].remedies[0].commands[]'
trio-sched explain --all-pending -o json | jq -r '.explanations[].cause.reasons[]' | sort | uniq -c
```

The first prints what would make the first change, the second how often each cause keeps the pods of a
workload pending. [The schema](explanation.schema.json) has every field; these answer most questions:

{fields}

`notes` beside `explanations` say what could not be seen, and what that may hide.

## Codes

"""
FIELDS: Final = (
    ("`pod`, `alike`, `workload`", "the pod that is explained, all pods that it stands for, and what makes them"),
    ("`node`", "where it is; null if it is pending"),
    (
        "`cause`",
        "null if it has a node. `reasons`: the codes below; `clauses`: what it asks for and does not get; `text`: as "
        "in the second line of the text; `fitsNow`: a node, if nothing keeps it",
    ),
    (
        "`clauses`",
        "each requirement that some node does not meet: its `reason`, how many nodes `pass` it, and how many would "
        "pass but for it alone",
    ),
    ("`groups`", "the nodes by the set of requirements that they do not meet"),
    (
        "`remedies`",
        "changes with which it was placed on a copy: `commands`, the same as `edits` with patches, the `node`, and the "
        "pods that it `evicts`",
    ),
    ("`tried`", "what was tried and does not help; `triedAll` says whether there was no more"),
    ("`waiting`", "since when, and of a running scheduler the place in the queue and the last attempts"),
    ("`onNodes`, `scores`", "what was asked with `--node`, and why a pod is where it is"),
)
"""Fields of an explanation in JSON, and what they are."""
SEVERAL: Final = "Several at once"
_NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
_WIDTH: Final = 100


def text() -> str:
    """The whole page."""
    examples: dict[str, list[PendingCause]] = {}
    for cause in CAUSES:
        title = next(iter(cause.reasons)) if len(cause.reasons) == 1 else SEVERAL
        examples.setdefault(title, []).append(cause)
    fields = table(("field of an explanation", "what it is"), FIELDS)
    parts = [HEADER.replace("{fields}\n", fields), table(("code", "meaning"), _codes(examples))]
    for heading, reasons in REASONS.items():
        shown = [code for code in reasons if code in examples]
        parts += [f"\n## {heading}\n"] if shown else []
        for code in shown:
            parts += [f"\n### {code}\n\n{reasons[code]}\n", *map(_example, examples[code])]
    parts += [f"\n## {SEVERAL}\n\nWhere no change of one thing helps, two or three are tried together.\n"]
    parts += map(_example, examples[SEVERAL])
    return "".join(parts)


def _codes(examples: dict[str, list[PendingCause]]) -> Iterator[tuple[str, str]]:
    for reasons in REASONS.values():
        for code, meaning in reasons.items():
            yield f"[`{code}`](#{code.lower()})" if code in examples else f"`{code}`", meaning


def _example(cause: PendingCause) -> str:
    return f"\n{cause.name[:1].upper()}{cause.name[1:]}:\n\n```text\n{_output(_explained(cause))}```\n"


def _output(explanation: dict[str, Any]) -> str:
    """The first lines of what is printed, and the first change."""
    first = {**explanation, "remedies": explanation["remedies"][:1], "triedAll": True}
    lines = explanation_text(first, Layout(width=_WIDTH)).splitlines()
    shown = lines[: lines.index("")] if "" in lines else lines
    if first["remedies"]:
        shown += ["…", *lines[next(n for n, line in enumerate(lines) if line.startswith("Would run")) :]]
        more = len(explanation["remedies"]) - 1
        shown += ["…"] if more else []
    return "\n".join(shown) + "\n"


def _explained(cause: PendingCause) -> dict[str, Any]:
    """The explanation of the pod, in the cluster from a file as from ``kubectl get -o json``."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(cause.objects)}))
        manifests = ClusterFiles(files=(file,)).load_dumped(_refuse, lambda _what: None)
    question = Question(settings=settings_of(None, "", PluginSelection()), names=[Name.read(cause.pod, "default")])
    (answer,) = trio.run(explain_manifests, question, manifests, _NOW, _refuse).answers
    return answer.explanation


def _refuse(warning: str) -> Never:
    raise ValueError(f"a cluster of the page is not as it should be: {warning}")


PAGE: Final = Page("causes.md", text)

if __name__ == "__main__":
    PAGE.write()
