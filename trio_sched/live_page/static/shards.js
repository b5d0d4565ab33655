// A replica that shares the work with others: which shards it has, what waits in its queue by shard, and what it and others
// wait for of each other. Whose nodes are whose is in the column `shard`; all of it is missing where nothing is shared.

import { byId, element, fill, oncePerFrame } from "./elements.js";
import { count, counted } from "./format.js";

const MOST_SHARDS = 8;

export class ShardsView {
  #shown = "";

  constructor(cluster) {
    this.cluster = cluster;
    cluster.addEventListener("change", oncePerFrame(() => this.#show()));
  }

  #show() {
    const { shards, shard_work: work } = this.cluster.summary;
    byId("shards").hidden = !shards;
    if (!shards) return;
    const lines = linesOf(shards, work);
    const shown = lines.join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    fill(byId("shards"), ...lines.map((line) => element("p", {}, line)));
  }
}

function linesOf(shards, { pending, nominated, asked }) {
  const moving = [
    shards.taking_over.length && `Being taken over: ${namesOf(shards.taking_over)}.`,
    shards.giving_back.length && `Being given back: ${namesOf(shards.giving_back)}.`,
  ].filter(Boolean);
  const largest = [...pending].sort((one, other) => other[1] - one[1]);
  const some = largest.slice(0, MOST_SHARDS).map(([shard, pods]) => `${shard}: ${count(pods)}`);
  const more = largest.length > MOST_SHARDS ? `, and ${count(largest.length - MOST_SHARDS)} more` : "";
  return [
    `The queue of this replica only, one of ${count(shards.replicas)}.`,
    moving.join(" "),
    `Pending by shard: ${some.join(", ") || "none"}${more}.`,
    `Nominated to others: ${counted(nominated, "pod")}; of others, waiting here: ${count(asked)}.`,
  ].filter(Boolean);
}

/** Shards that a replica holds, whether it decides for them already or not. */
export function heldOf(shards) {
  return [...shards.ready, ...shards.taking_over, ...shards.giving_back].sort((one, other) => one - other);
}

/** Numbers in order, with three and more that follow on each other as ranges: `0–3, 7, 8`; `none`. */
export function namesOf(numbers) {
  const ranges = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const words = ranges.map(([first, last]) => (last - first > 1 ? `${first}–${last}` : [...new Set([first, last])].join(", ")));
  return words.join(", ") || "none";
}

/** A function that says of a row whether its node is one of this replica, which all are if nothing is shared. */
export function ownNodes({ nodes, summary: { shards } }) {
  if (!shards) return () => true;
  const held = new Set(heldOf(shards));
  return (row) => held.has(nodes.shard[row]);
}

/** Whose the node of *row* is, in words; empty if nothing is shared. */
export function ownerOf(cluster, row) {
  if (!cluster.summary.shards) return "";
  return `shard ${cluster.nodes.shard[row]}, ${ownNodes(cluster)(row) ? "this replica" : "another replica"}`;
}
