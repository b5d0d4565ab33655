// The nodes as a list, for who cannot see the map or wants names: those that are not ready first, then the fullest.

import { CORDONED, NOT_READY, TAINTED } from "./cluster.js";
import { byId, element, fill, oncePerFrame, setText } from "./elements.js";
import { count, percent } from "./format.js";
import { VirtualList } from "./virtual_list.js";

const HEIGHT = 32;
const CELLS = 6; // beside the name

export class NodesTable {
  #show = oncePerFrame(() => this.#showNow());

  constructor(cluster, address, map) {
    Object.assign(this, { cluster, address, map });
    const scroller = element("div", { class: "scroller" });
    const heads = ["Node", "Zone / pool", "State", "CPU", "Memory", "Pods"].map((head) => element("span", {}, head));
    this.chosen = element("span");
    fill(byId("nodes"), element("div", { class: "node heads", "aria-hidden": "true" }, ...heads, this.chosen), scroller);
    this.list = new VirtualList(scroller, made, (line, item) => this.#update(line, item));
    cluster.addEventListener("change", this.#show);
    map.addEventListener("coloured", this.#show);
  }

  /** Shows the nodes of now, once the view is. */
  start() {
    this.#show();
  }

  #showNow() {
    if (byId("nodes").hidden) return;
    const { nodes } = this.cluster;
    const { share, measure } = this.map;
    setText(this.chosen, measure.title);
    const ranks = Float64Array.from({ length: nodes.length }, (_, row) => (nodes.flags[row] & NOT_READY ? 1e9 : 0) + (share(row) || 0));
    const rows = Uint32Array.from(ranks, (_, row) => row).sort((one, other) => ranks[other] - ranks[one]);
    this.list.show(Array.from(rows, (row) => ({ key: nodes.id[row], height: HEIGHT, row })));
  }

  #update(line, { row }) {
    const { nodes, zones, pools } = this.cluster;
    const name = nodes.name[row];
    const href = this.address.link({ view: "nodes", node: name });
    const [link, ...cells] = line.children;
    setText(link, name);
    link.title = name;
    if (link.getAttribute("href") !== href) link.setAttribute("href", href);
    line.classList.toggle("bad", Boolean(nodes.flags[row] & NOT_READY));
    const texts = [
      [zones[nodes.zone[row]], pools[nodes.pool[row]]].filter(Boolean).join(" / "),
      stateOf(nodes.flags[row]),
      percent(nodes.cpu[row]),
      percent(nodes.memory[row]),
      `${count(nodes.pods[row])} / ${count(nodes.pod_limit[row])}`,
      percent(this.map.share(row)),
    ];
    cells.forEach((cell, index) => setText(cell, texts[index]));
  }
}

/** The marks of a node in words. */
export function stateOf(flags) {
  const words = [flags & NOT_READY && "not ready", flags & CORDONED && "cordoned", flags & TAINTED && "tainted"].filter(Boolean);
  return words.join(", ") || "ready";
}

function made() {
  return element("div", { class: "node" }, element("a"), ...Array.from({ length: CELLS }, () => element("span")));
}
