// What stands around the map: the choice of colours, the legend, and the numbers of the node under the pointer.

import { STEPS } from "./colours.js";
import { byId, element, fill, setText } from "./elements.js";
import { count, percent } from "./format.js";
import { measuresOf, shareOf } from "./cluster.js";
import { stateOf } from "./nodes_table.js";
import { ownerOf } from "./shards.js";

const OFF = 14;

export class MapControls {
  #tip = byId("tip");
  #pointed = { row: -1 };

  constructor(cluster, address, map) {
    Object.assign(this, { cluster, address, map });
    cluster.addEventListener("change", (change) => {
      if (change.isWhole) this.#measures();
      // Under the pointer may be another node now, or other numbers.
      if (change.isLayout) this.#tip.hidden = true;
      else if (!this.#tip.hidden && change.rows.has(this.#pointed.row)) this.#point(this.#pointed);
      byId("own").hidden = !cluster.summary.shards;
      const isEmpty = !cluster.nodes.length;
      byId("no-nodes").hidden = !isEmpty;
      if (isEmpty) setText(byId("no-nodes"), "There are no nodes: pods wait until one is added.");
    });
    const own = byId("own").firstElementChild;
    own.addEventListener("click", () => own.setAttribute("aria-pressed", map.toggleOthers()));
    map.addEventListener("coloured", () => this.#legend());
    map.addEventListener("point", (event) => this.#point(event));
    map.addEventListener("focusnode", ({ row }) => setText(byId("spoken-node"), this.words(row).join(", ")));
    this.#legend();
  }

  /** Chooses the measure at a place, counted from 0; nothing happens if there is none. */
  choose(index) {
    const measure = measuresOf(this.cluster)[index];
    if (measure) this.address.set({ colour: index ? measure.key : "" });
  }

  /** What is known of the node of *row*, a line each. */
  words(row) {
    const { cluster } = this;
    const { nodes, zones, pools } = cluster;
    const place = [zones[nodes.zone[row]], pools[nodes.pool[row]]].filter(Boolean).join(" / ");
    const amount = ` (${count(nodes.pods[row])} of ${count(nodes.pod_limit[row])})`;
    const shares = measuresOf(cluster).slice(1).map((measure) => [measure, shareOf(cluster, measure)(row)]);
    return [
      nodes.name[row],
      [place, stateOf(nodes.flags[row]), ownerOf(cluster, row)].filter(Boolean).join(" · "),
      ...shares
        .filter(([, share]) => !Number.isNaN(share))
        .map(([{ title, key }, share]) => `${title} ${percent(share)}${key === "pods" ? amount : ""}`),
    ];
  }

  #measures() {
    fill(
      byId("measures"),
      ...measuresOf(this.cluster).map((measure, index) => {
        const title = `Colour by ${measure.words}${index < 9 ? ` (${index + 1})` : ""}`;
        const attributes = { "data-measure": measure.key, "aria-keyshortcuts": index < 9 ? String(index + 1) : null };
        const onclick = () => this.choose(index);
        return element("button", { type: "button", title, onclick, ...attributes }, measure.title);
      }),
    );
    this.#press();
  }

  #press() {
    for (const button of byId("measures").children) button.setAttribute("aria-pressed", button.dataset.measure === this.map.measure.key);
  }

  #legend() {
    const steps = this.map.steps.map(({ fill: colour }, index) => {
      const step = element("i", { class: index === STEPS ? "beyond" : null });
      step.style.background = colour;
      return step;
    });
    const [scale, beyond] = [steps.slice(0, STEPS), steps[STEPS]];
    fill(
      byId("legend"),
      ...["0%", ...scale, "100%", beyond, "more"],
      element("span", { class: "mark cordoned" }),
      "cordoned",
      element("span", { class: "mark not-ready" }),
      "not ready",
    );
    byId("legend").setAttribute("aria-label", `Colours: ${this.map.measure.words} that is requested, from 0% to 100%, and more than that`);
    this.#press();
  }

  #point(pointed) {
    const { row, x, y } = (this.#pointed = pointed);
    this.#tip.hidden = row < 0;
    if (row < 0) return;
    const [name, ...lines] = this.words(row);
    fill(this.#tip, element("b", {}, name), ...lines.map((line) => element("span", {}, line)));
    const { clientWidth: width, clientHeight: height } = this.#tip.parentElement;
    const left = x + OFF + this.#tip.offsetWidth > width ? x - OFF - this.#tip.offsetWidth : x + OFF;
    const top = y + OFF + this.#tip.offsetHeight > height ? y - OFF - this.#tip.offsetHeight : y + OFF;
    this.#tip.style.transform = `translate(${Math.max(0, left)}px, ${Math.max(0, top)}px)`;
  }
}
