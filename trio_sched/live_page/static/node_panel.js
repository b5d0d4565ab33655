// One node: how much of it is requested, its pods, taints and labels.

import { CORDONED, measuresOf, NOT_READY, shareOf } from "./cluster.js";
import { element, table } from "./elements.js";
import { age, count, counted, percent } from "./format.js";
import { getJson } from "./connection.js";
import { ownerOf } from "./shards.js";

/** How the panel shows the node *name*. */
export function nodePage(name, cluster, address) {
  return {
    waiting: "Asking for the node…",
    isLive: true,
    load: (signal) => getJson("node", { name, ...cluster.when }, signal),
    draw: (node) => draw(node, cluster, address),
  };
}

function draw(node, cluster, address) {
  const row = cluster.nodeRow(node.name);
  const pods = node.pods ?? [];
  const podRows = pods.map((pod) => [
    element("a", { href: address.link({ pod: `${pod.namespace}/${pod.name}` }) }, `${pod.namespace}/${pod.name}`),
    pod.cpu ?? "",
    pod.memory ?? "",
    count(pod.priority ?? 0),
    age(pod.since, cluster.now()),
    pod.phase ?? "",
  ]);
  return [
    row < 0 ? null : state(cluster.nodes.flags[row]),
    row >= 0 && cluster.summary.shards ? element("p", { class: "note" }, `Of ${ownerOf(cluster, row)}.`) : null,
    row < 0 ? null : bars(cluster, row),
    amounts(node),
    element("h3", {}, counted(pods.length + (node.more ?? 0), "pod")),
    table("Pods of the node", ["Pod", "CPU", "Memory", "Priority", "Age", "Phase"], podRows, [1, 2, 3, 4]),
    node.more ? element("p", { class: "note" }, `and ${count(node.more)} more`) : null,
    ...words("Taints", node.taints ?? []),
    ...words("Labels", Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${value}`)),
  ];
}

function state(flags) {
  const texts = [flags & NOT_READY && "not ready", flags & CORDONED && "cordoned"].filter(Boolean);
  return texts.length ? element("p", { class: "state bad" }, `This node is ${texts.join(" and ")}.`) : null;
}

function bars(cluster, row) {
  const list = element("dl", { class: "bars" });
  for (const measure of measuresOf(cluster).slice(1)) {
    const share = shareOf(cluster, measure)(row);
    if (Number.isNaN(share)) continue;
    const bar = element("i", { class: share > 1000 ? "over" : null });
    bar.style.width = `${Math.min(share, 1000) / 10}%`;
    list.append(element("dt", { title: measure.words }, measure.title), element("dd", {}, element("span", { class: "bar" }, bar), percent(share)));
  }
  return list;
}

function amounts({ allocatable = {}, requested = {} }) {
  const rows = Object.entries(allocatable).map(([name, whole]) => [name, requested[name] ?? "0", whole]);
  return table("Requested of what is allocatable", ["Resource", "Requested", "Allocatable"], rows, [1, 2]);
}

function words(title, texts) {
  if (!texts.length) return [];
  return [element("h3", {}, title), element("ul", { class: "words" }, ...texts.map((text) => element("li", {}, text)))];
}
