// The scheduler in one line: what is there, how full it is, what runs and waits, how fast, who leads, with which settings;
// and what needs attention, in a sentence each.

import { NOT_READY } from "./cluster.js";
import { byId, element, fill, oncePerFrame, setText } from "./elements.js";
import { age, bytesOf, clock, cores, count, counted, duration, percent, rate } from "./format.js";
import { heldOf, namesOf } from "./shards.js";

const SPOKEN_EVERY_MS = 20_000;
const MAY_BE_LONG = new Set(["Leader", "Shards", "Configuration", "State", "Watches"]);

export class SummaryLine {
  #tiles = new Map();
  #spoken = -Infinity;

  constructor(cluster) {
    this.cluster = cluster;
    cluster.addEventListener("change", () => this.show());
    setInterval(() => cluster.time && this.show(), 1000);
  }

  show() {
    const { summary, source } = this.cluster;
    const now = this.cluster.now();
    setText(byId("source"), source.name || "trio-sched");
    this.#tile("Nodes", count(summary.nodes), troubleOfNodes(summary), summary.nodes_not_ready > 0);
    this.#share("CPU", summary.cpu, (used, whole) => `${cores(used)} / ${cores(whole)}`);
    this.#share("Memory", summary.memory, bytesOf);
    this.#pods(summary);
    this.#tile("Binds", `${rate(summary.binds_per_second)}/s`, preemptions(summary), false, summary.binds_per_second);
    const { bind_p50: middle, bind_p99: slow } = summary;
    this.#tile("Bind p50 / p99", `${duration(middle)} / ${duration(slow)}`, "", false, middle ?? slow);
    this.#leader(summary, now);
    this.#shards(summary);
    this.#configuration(summary, now);
    this.#watches(summary);
    this.#speak(summary, source);
  }

  #pods({ pods, queues, shards }) {
    const running = pods ? `${count(pods[0])} running` : "";
    if (!queues) return this.#tile("Pods", running, "", false, pods);
    const { pending, waiting } = pendingOf(queues);
    this.#tile("Pods", running, `${count(pending)} pending${shards ? " here" : ""}, ${count(waiting)} waiting`, false, true);
  }

  /** Of replicas that share the work, all hold the lease together. */
  #leader({ leader, shards }, now) {
    const since = leader && leader.since ? `for ${age(leader.since, now)}` : "";
    const note = leader?.is_self ? `this one, ${since}` : since;
    this.#tile("Leader", leader?.name ?? "", note.replace(/, $/, ""), false, shards && leader?.is_self ? null : leader);
  }

  #shards({ shards, shard_work: work }) {
    const value = shards ? `${namesOf(heldOf(shards))} of ${count(shards.count)}` : "";
    const note = shards ? `${counted(work.nodes, "node")}, ${counted(work.pods, "pod")}` : "";
    this.#tile("Shards", value, note, false, shards);
  }

  #configuration({ configuration, paused }, now) {
    const error = configuration?.error;
    const note = error ? "last reload failed" : configuration ? `loaded ${clock(configuration.loaded, now)}` : "";
    const name = configuration?.name ?? "";
    this.#tile("Configuration", name.slice(name.lastIndexOf("/") + 1), note, Boolean(error), configuration);
    this.#tile("State", "Paused", "no pods are scheduled", false, paused || null);
  }

  #watches({ watches }) {
    const bad = (watches ?? []).filter((watch) => watch.state !== "fresh");
    const oldest = bad.map((watch) => `${watch.kind} ${watch.state} ${duration(watch.age)}`).join(", ");
    const value = bad.length ? `${bad.length} of ${watches.length} not fresh` : "fresh";
    this.#tile("Watches", value, oldest || `${count(watches?.length)} kinds`, bad.length > 0, watches);
  }

  #share(title, pair, words) {
    const share = pair && pair[1] > 0 ? (1000 * pair[0]) / pair[1] : NaN;
    const tile = this.#tile(title, percent(share), pair ? words(...pair) : "", share > 1000, pair);
    if (tile) tile.bar.style.width = `${Math.min(share || 0, 1000) / 10}%`;
  }

  /** Shows a fact; none where *known* says that the source does not know it. */
  #tile(title, value, note, isBad, known = true) {
    let tile = this.#tiles.get(title);
    if (!tile) {
      const parts = { value: element("b"), note: element("span", { class: "note" }), bar: element("i") };
      const bar = element("span", { class: "bar", "aria-hidden": "true" }, parts.bar);
      const attributes = { class: MAY_BE_LONG.has(title) ? "long" : null };
      const whole = element("div", attributes, element("dt", {}, title), element("dd", {}, parts.value, parts.note, bar));
      bar.hidden = title !== "CPU" && title !== "Memory";
      tile = { ...parts, whole };
      this.#tiles.set(title, tile);
      fill(byId("summary"), ...[...this.#tiles.values()].map((one) => one.whole));
    }
    tile.whole.hidden = known === null || known === undefined;
    tile.whole.classList.toggle("bad", isBad);
    tile.whole.title = tile.whole.hidden ? "" : `${title}: ${value}${note && `, ${note}`}`;
    setText(tile.value, value);
    setText(tile.note, note);
    return tile;
  }

  /** For screen readers, now and then: a region that changed three times a second could not be listened to. */
  #speak(summary, source) {
    const { pending } = pendingOf(summary.queues ?? []);
    document.title = `${count(pending)} pending · ${source.name || "trio-sched"}`;
    if (performance.now() - this.#spoken < SPOKEN_EVERY_MS) return;
    this.#spoken = performance.now();
    setText(
      byId("spoken"),
      `${count(summary.nodes)} nodes, ${count(summary.nodes_not_ready)} not ready; ${count(summary.pods?.[0])} pods running, ` +
        `${count(pending)} pending${summary.shards ? " in this replica" : ""}; ${rate(summary.binds_per_second)} binds per second.`,
    );
  }
}

/** Pods that have no node yet, and those that have one but wait for a plugin or for the end of their bind. */
function pendingOf([active = 0, backoff = 0, unschedulable = 0, gated = 0, permit = 0, binding = 0, gang = 0]) {
  return { pending: active + backoff + unschedulable + gated + gang, waiting: permit + binding };
}

function troubleOfNodes({ nodes_not_ready: notReady, nodes_cordoned: cordoned }) {
  const parts = [notReady ? `${count(notReady)} not ready` : "", cordoned ? `${count(cordoned)} cordoned` : ""];
  return parts.filter(Boolean).join(", ") || "all ready";
}

function preemptions({ preemptions_per_second: preempted }) {
  return preempted > 0 ? `${rate(preempted)} preempted/s` : "";
}

const MOST_NAMES = 3;

export class Troubles {
  #shown = "";

  constructor(cluster, address) {
    Object.assign(this, { cluster, address });
    cluster.addEventListener("change", oncePerFrame(() => this.#show()));
  }

  #show() {
    const troubles = [this.#nodes(), ...this.#settings()].filter(Boolean);
    const shown = JSON.stringify(troubles);
    if (shown === this.#shown) return; // or a link under the pointer would be another element
    this.#shown = shown;
    const link = (name) => element("a", { href: this.address.link({ node: name }) }, name);
    fill(
      byId("troubles"),
      ...troubles.map(({ text, names = [], more = 0 }) =>
        element("li", {}, text, ...names.flatMap((name, i) => [i ? ", " : " ", link(name)]), more ? ` and ${more} more` : ""),
      ),
    );
  }

  #nodes() {
    const { nodes } = this.cluster;
    const names = [];
    let found = 0;
    for (let row = 0; row < nodes.length; row++) {
      if (!(nodes.flags[row] & NOT_READY)) continue;
      if (found++ < MOST_NAMES) names.push(nodes.name[row]);
    }
    if (!found) return null;
    return { text: `${counted(found, "node")} not ready:`, names, more: found - names.length };
  }

  #settings() {
    const { configuration, watches, leader } = this.cluster.summary;
    const troubles = [];
    if (configuration?.error) troubles.push({ text: `The last reload failed, the configuration before is in force: ${configuration.error}` });
    for (const watch of watches ?? []) {
      if (watch.state === "down") troubles.push({ text: `The watch of ${watch.kind} is down for ${duration(watch.age)}.` });
    }
    if (leader && !leader.name) troubles.push({ text: "No scheduler leads: pods wait until one does." });
    return troubles;
  }
}
