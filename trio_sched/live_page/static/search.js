// Finds pods by words, each in the name, the namespace or a label (asked of the scheduler), and nodes by name (here).

import { byId, element, fill } from "./elements.js";
import { QUEUES } from "./cluster.js";
import { getJson } from "./connection.js";

const DELAY_MS = 200;
const MOST_NODES = 8;
const MOST_PODS = 50;

export class Search {
  #input = byId("query");
  #found = byId("found");
  #timer = 0;
  #asking = null;
  #chosen = -1;

  constructor(cluster, address, map) {
    Object.assign(this, { cluster, address, map });
    this.#input.addEventListener("input", () => this.#typed());
    this.#input.addEventListener("focus", () => this.#words().length && this.#typed());
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    byId("search").addEventListener("focusout", (event) => {
      if (!byId("search").contains(event.relatedTarget)) this.#close();
    });
  }

  focus() {
    this.#input.focus();
    this.#input.select();
  }

  #words() {
    return this.#input.value.trim().split(/\s+/).filter(Boolean);
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const words = this.#words();
    const nodes = words.length ? this.#nodes(words) : [];
    // Words that are those of pods do not dim all nodes.
    this.map.highlight(nodes.length ? words : []);
    if (!words.length) return this.#close();
    this.#show(nodes, null);
    this.#timer = setTimeout(() => this.#ask(words, nodes), DELAY_MS);
  }

  async #ask(words, nodes) {
    const asking = (this.#asking = new AbortController());
    try {
      const found = await getJson("pods", { query: words.join(" "), limit: MOST_PODS, ...this.cluster.when }, asking.signal);
      if (!asking.signal.aborted) this.#show(nodes, found);
    } catch (error) {
      if (!asking.signal.aborted) this.#show(nodes, { pods: [], error: error.message });
    }
  }

  #nodes(words) {
    const names = [];
    for (const name of this.cluster.nodes.name) {
      if (words.every((word) => name.includes(word)) && names.push(name) === MOST_NODES) break;
    }
    return names;
  }

  #show(nodes, found) {
    const option = (values, text, note) => {
      const attributes = { role: "option", tabindex: "-1", href: this.address.link(values), onclick: () => this.#chose() };
      return element("a", attributes, text, element("span", { class: "note" }, note));
    };
    const options = [
      ...nodes.map((name) => option({ node: name }, name, "node")),
      ...(found?.pods ?? []).map((pod) =>
        option({ pod: `${pod.namespace}/${pod.name}` }, `${pod.namespace}/${pod.name}`, pod.node || (QUEUES[pod.queue] ?? String(pod.queue ?? ""))),
      ),
    ];
    const more = found?.more > 0 ? `and ${found.more} more pods` : "";
    const nothing = options.length ? "" : "Nothing has all these words.";
    const note = found === null ? "Searching pods…" : found.error || more || nothing;
    fill(this.#found, ...options, note ? element("p", { class: "note" }, note) : null);
    options.forEach((made, index) => (made.id = `found-${index}`));
    this.#found.hidden = false;
    this.#input.setAttribute("aria-expanded", "true");
    this.#choose(-1);
  }

  #choose(index) {
    const options = this.#found.querySelectorAll("a");
    this.#chosen = Math.min(Math.max(index, -1), options.length - 1);
    options.forEach((one, i) => one.setAttribute("aria-selected", i === this.#chosen));
    options[this.#chosen]?.scrollIntoView({ block: "nearest" });
    if (this.#chosen < 0) this.#input.removeAttribute("aria-activedescendant");
    else this.#input.setAttribute("aria-activedescendant", options[this.#chosen].id);
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#choose(this.#chosen + step);
    else if (event.key === "Enter") this.#found.querySelectorAll("a")[Math.max(this.#chosen, 0)]?.click();
    else if (event.key === "Escape") {
      this.#input.value = "";
      this.#typed();
      this.#input.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Something was chosen: keys are those of the page again. */
  #chose() {
    this.#input.blur();
    this.#close();
  }

  #close() {
    this.#found.hidden = true;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }
}
