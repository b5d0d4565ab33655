// The keys of the page, and the dialog that lists them.

import { byId, element, fill } from "./elements.js";

const LISTED = [
  ["1 – 9", "colour the nodes by the highest share, CPU, memory, pods, a device"],
  ["m, n, h", "show the map, the nodes as a list, the last hour"],
  ["/", "find pods and nodes"],
  ["← → ↑ ↓", "on the map go from node to node, in lists from row to row"],
  ["Enter", "open what is marked"],
  ["+ − 0", "zoom in, zoom out, show all nodes; wheel and two fingers zoom, too, and dragging moves"],
  ["Space , .", "play or pause a recording, a step back, a step forward"],
  ["t", "colours as the system, light, dark"],
  ["Escape", "close the panel"],
];
const VIEWS = { m: "", n: "nodes", h: "history" };

/** Listens for keys; *close* closes the panel. */
export function listen({ address, map, controls, search, theme, timeline, close }) {
  const dialog = byId("keys");
  const shut = element("button", { type: "button", onclick: () => dialog.close(), "aria-label": "Close" }, "✕");
  const list = element("dl", {}, ...LISTED.flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)]));
  fill(dialog, element("header", {}, element("h2", {}, "Keys"), shut), list);
  const help = () => dialog.showModal();
  byId("help").addEventListener("click", help);

  const actions = {
    "/": () => search.focus(),
    "?": help,
    t: () => theme.next(),
    "+": () => map.view.zoom(1.5),
    "=": () => map.view.zoom(1.5),
    "-": () => map.view.zoom(1 / 1.5),
    0: () => map.view.showAll(),
    Escape: close,
  };
  const ofTime = { " ": () => timeline.toggle(), ",": () => timeline.step(-1), ".": () => timeline.step(1) };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    if (event.target.matches("input[type=search]")) return;
    // A button takes the space bar for itself.
    const isOfTime = timeline.isThere && !(event.key === " " && event.target.matches("button, a, summary"));
    const action =
      (isOfTime && ofTime[event.key]) ||
      actions[event.key] ||
      (event.key in VIEWS && (() => address.set({ view: VIEWS[event.key] }))) ||
      (/^[1-9]$/.test(event.key) && (() => controls.choose(Number(event.key) - 1)));
    if (!action) return;
    event.preventDefault();
    action();
  });
}
