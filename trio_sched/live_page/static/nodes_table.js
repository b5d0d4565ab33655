// The nodes as a list, for who cannot see the map or wants names: those that are not ready first, then the fullest.

import { CORDONED, NOT_READY, TAINTED } from "./cluster.js";
import { byId, element, fill, oncePerFrame, setText } from "./elements.js";
import { count, percent } from "./format.js";
import { VirtualList } from "./virtual_list.js";

const HEIGHT = 32;

export class NodesTable {
  #show = oncePerFrame(() => this.#showNow());

  constructor(cluster, address, map) {
    Object.assign(this, { cluster, address, map });
    const scroller = element("div", { class: "scroller" });
    const heads = ["Node", "Zone / pool", "State", "CPU", "Memory", "Pods"].map((head) => element("span", {}, head));
    this.chosen = element("span");
    fill(byId("nodes"), element("div", { class: "node heads", "aria-hidden": "true" }, ...heads, this.chosen), scroller);
    this.list = new VirtualList(scroller, made, update);
    cluster.addEventListener("change", this.#show);
    map.addEventListener("coloured", this.#show);
  }

  /** Shows the nodes of now, once the view is. */
  start() {
    this.#show();
  }

  #showNow() {
    if (byId("nodes").hidden) return;
    const { nodes, zones, pools } = this.cluster;
    const { share, measure } = this.map;
    setText(this.chosen, measure.title);
    const rows = Array.from({ length: nodes.length }, (_, row) => row);
    const rank = (row) => (nodes.flags[row] & NOT_READY ? 1e9 : 0) + (share(row) || 0);
    rows.sort((one, other) => rank(other) - rank(one));
    this.list.show(
      rows.map((row) => ({
        key: nodes.id[row],
        height: HEIGHT,
        name: nodes.name[row],
        href: this.address.link({ view: "nodes", node: nodes.name[row] }),
        isBad: Boolean(nodes.flags[row] & NOT_READY),
        texts: [
          [zones[nodes.zone[row]], pools[nodes.pool[row]]].filter(Boolean).join(" / "),
          stateOf(nodes.flags[row]),
          percent(nodes.cpu[row]),
          percent(nodes.memory[row]),
          `${count(nodes.pods[row])} / ${count(nodes.pod_limit[row])}`,
          percent(share(row)),
        ],
      })),
    );
  }
}

/** The marks of a node in words. */
export function stateOf(flags) {
  const words = [flags & NOT_READY && "not ready", flags & CORDONED && "cordoned", flags & TAINTED && "tainted"].filter(Boolean);
  return words.join(", ") || "ready";
}

function made(item) {
  return element("div", { class: "node" }, element("a", { title: item.name }, item.name), ...item.texts.map(() => element("span")));
}

function update(line, item) {
  line.classList.toggle("bad", item.isBad);
  if (line.firstChild.getAttribute("href") !== item.href) line.firstChild.setAttribute("href", item.href);
  item.texts.forEach((text, index) => setText(line.children[index + 1], text));
}
