// Begins the page: makes its parts and shows what the address says.

import { Cluster } from "./cluster.js";
import { Connection } from "./connection.js";
import { byId } from "./elements.js";
import { HistoryView } from "./history_view.js";
import { listen } from "./keyboard.js";
import { MapControls } from "./map_controls.js";
import { NodeMap } from "./node_map.js";
import { nodePage } from "./node_panel.js";
import { NodesTable } from "./nodes_table.js";
import { Panel } from "./panel.js";
import { podPage } from "./pod_panel.js";
import { QueueView } from "./queue_view.js";
import { Search } from "./search.js";
import { ShardsView } from "./shards.js";
import { SummaryLine, Troubles } from "./summary.js";
import { Theme } from "./colours.js";
import { Timeline } from "./timeline.js";

const VIEWS = ["map", "nodes", "history"];

/**
 * What is shown, in the part of the address behind "#", so that it can be linked to: #node=…, #pod=namespace/name,
 * #view=nodes|history, #colour=….
 *
 * Sends `change` when it changes, by the page or by the reader.
 */
class Address extends EventTarget {
  constructor() {
    super();
    addEventListener("hashchange", () => this.dispatchEvent(new Event("change")));
  }

  get(name) {
    return new URLSearchParams(location.hash.slice(1)).get(name) ?? "";
  }

  /** Sets some *values*, empty ones are left out. With *isStep*, the browser's Back comes back to what was before. */
  set(values, isStep = false) {
    const hash = addressOf({ ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))), ...values });
    if (hash === (location.hash || "#")) return;
    if (isStep) location.hash = hash;
    else {
      history.replaceState(null, "", hash);
      this.dispatchEvent(new Event("change"));
    }
  }

  /** A link to *values* that keeps the view and the colour of now. */
  link(values) {
    return addressOf({ view: this.get("view"), colour: this.get("colour"), ...values });
  }
}

function addressOf(values) {
  const parts = Object.entries(values).filter(([, value]) => value);
  return `#${parts.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2F", "/")}`).join("&")}`;
}

const address = new Address();
const theme = new Theme();
const cluster = new Cluster();
const map = new NodeMap(cluster, theme);
const controls = new MapControls(cluster, address, map);
const table = new NodesTable(cluster, address, map);
const historyView = new HistoryView(cluster, theme);
const close = () => address.set({ node: "", pod: "" });
const panel = new Panel(close);
new SummaryLine(cluster);
new Troubles(cluster, address);
new ShardsView(cluster);
new QueueView(cluster, address);
const search = new Search(cluster, address, map);
const timeline = new Timeline(cluster);

let shownView = "";
let shownPage = "";

function show() {
  showView(VIEWS.includes(address.get("view")) ? address.get("view") : "map");
  const colour = address.get("colour") || "highest";
  if (colour !== map.measure.key) map.use(colour);
  showPage();
}

function showView(view) {
  if (view === shownView) return;
  shownView = view;
  for (const name of VIEWS) byId(name).hidden = name !== view;
  for (const button of byId("views").children) button.setAttribute("aria-pressed", button.dataset.view === view);
  document.body.dataset.view = view;
  if (view === "history") historyView.start();
  else historyView.stop();
  if (view === "nodes") table.start();
}

function showPage() {
  const [node, pod] = [address.get("node"), address.get("pod")];
  const page = pod ? `pod ${pod}` : node && `node ${node}`;
  if (page === shownPage) return;
  shownPage = page;
  map.focus(node);
  if (!page) return panel.close();
  const [namespace, name] = pod.includes("/") ? pod.split("/") : ["default", pod];
  if (pod) panel.open(pod, podPage(namespace, name, cluster, address));
  else panel.open(node, nodePage(node, cluster, address));
}

address.addEventListener("change", show);
// Devices, and where a node is, are known from the first snapshot on.
cluster.addEventListener("change", ({ isWhole }) => {
  if (!isWhole) return;
  map.use(address.get("colour"));
  if (address.get("node")) map.focus(address.get("node"));
});
map.addEventListener("open", ({ name }) => address.set({ node: name, pod: "" }, true));
for (const button of byId("views").children) {
  button.addEventListener("click", () => address.set({ view: button.dataset.view === "map" ? "" : button.dataset.view }));
}
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("queues").querySelector("button").focus();
});
listen({ address, map, controls, search, theme, timeline, close });
show();
new Connection(cluster);
