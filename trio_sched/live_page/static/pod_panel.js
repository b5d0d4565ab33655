// Why a pod is pending, or where it is: its cause, the changes that let it run with their commands, and the evidence.

import { element, table } from "./elements.js";
import { count, counted, duration } from "./format.js";
import { getJson } from "./connection.js";

const COPIED_MS = 1500;
const TOUCHES = {
  PodInPlace: "changes the pod in place",
  Node: "changes a node",
  Object: "changes another object",
  PodRecreated: "makes the pod again",
  ControlPlane: "puts it beside the control plane",
  WorkloadRecreated: "makes its StatefulSet again",
  OtherPods: "moves or ends other pods",
  NewNode: "adds a node",
  FewerPods: "leaves another workload fewer pods",
  Volume: "gives it an empty volume",
  NewZone: "adds a node where there is none like it",
  BrokenNode: "puts it where it may not start",
  PodGivenUp: "gives the pod up",
};

/** How the panel shows the explanation of a pod; where time can be gone through, that of the time that is shown. */
export function podPage(namespace, name, cluster, address) {
  let shown = null;
  const load = async (signal) => {
    const when = cluster.when;
    if (shown?.time !== when.time || !shown) shown = { ...when, explanation: await getJson("pod", { namespace, name, ...when }, signal) };
    return shown.explanation;
  };
  return {
    waiting: "Working out why, and trying changes on a copy of the cluster…",
    isLive: Boolean(cluster.timeline),
    load,
    draw: (explanation) => draw(explanation, address),
  };
}

function draw(explanation, address) {
  const { cause, node, waiting } = explanation;
  return [
    node ? element("p", { class: "state good" }, "It has a node: ", nodeLink(node, address)) : null,
    cause ? element("p", { class: "cause" }, cause.text) : null,
    cause?.fitsNow ? element("p", {}, "It fits now on ", nodeLink(cause.fitsNow, address), ".") : null,
    waiting ? element("p", { class: "note" }, waits(waiting)) : null,
    ...list("", waiting?.details),
    ...remedies(explanation, address),
    ...clauses(explanation),
    ...scores(explanation, address),
    ...list("The last attempts", waiting?.history),
    ...list("It is tried again when", explanation.events),
    ...list("Notes", explanation.notes),
    about(explanation),
  ];
}

function nodeLink(name, address) {
  return element("a", { href: address.link({ node: name }) }, name);
}

function waits({ state, attempts, pendingSeconds, againInSeconds, ahead }) {
  const parts = [
    state && `in the queue: ${state}`,
    pendingSeconds !== null && `pending for ${duration(pendingSeconds)}`,
    counted(attempts, "attempt"),
    againInSeconds !== null && `tried again in ${duration(againInSeconds)} at the latest`,
    ahead > 0 && `${count(ahead)} ahead of it`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function remedies({ remedies: changes, tried, triedAll, cause }, address) {
  if (!cause) return [];
  const items = changes.map((change) =>
    element(
      "li",
      {},
      element("b", {}, change.title),
      element(
        "p",
        { class: "note" },
        TOUCHES[change.touches] ?? change.touches,
        change.node ? [", then it runs on ", nodeLink(change.node, address)] : "",
      ),
      change.evicts.length ? element("p", { class: "note bad" }, `ends ${change.evicts.join(", ")}`) : null,
      ...change.notes.map((note) => element("p", { class: "note" }, note)),
      change.commands.length ? commands(change.commands) : null,
    ),
  );
  return [
    element("h3", {}, changes.length ? "What lets it run, tried on a copy" : "No change that was tried lets it run"),
    changes.length ? element("ol", { class: "remedies" }, ...items) : null,
    tried.length ? element("details", {}, element("summary", {}, "What does not help"), ...list("", tried)) : null,
    triedAll ? null : element("p", { class: "note" }, "Not everything could be tried in the time there was."),
  ];
}

function commands(lines) {
  const text = lines.join("\n");
  const button = element("button", { type: "button", onclick: () => copy(text, code, button) }, "Copy");
  const code = element("code", { tabindex: "0" }, text);
  return element("pre", {}, button, code);
}

/** The clipboard is there only over HTTPS or on this computer; else the text is selected, to be copied by keys. */
async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}

function clauses({ clauses: all, nodes }) {
  if (!all.length) return [];
  const rows = all.map((clause) => [
    [element("b", {}, clause.title), clause.plugin ? element("span", { class: "note" }, clause.plugin) : null],
    `${count(clause.pass)} of ${count(nodes)}`,
    clause.passWithoutItAlone ? `+${count(clause.passWithoutItAlone)}` : "",
    [clause.cause, ...clause.details, ...clause.problems].filter(Boolean).map((text) => element("div", {}, text)),
  ]);
  const heads = ["What it asks for", "Nodes", "Without it", "Evidence"];
  return [element("h3", {}, "What it asks for"), table("What it asks for", heads, rows, [1, 2])];
}

function scores({ scores: best }, address) {
  if (!best.length) return [];
  const plugins = [...new Set(best.flatMap((node) => node.scores.map((score) => score.plugin)))];
  const rows = best.map((node) => {
    const of = new Map(node.scores.map((score) => [score.plugin, score.score * score.weight]));
    return [nodeLink(node.node, address), count(node.total), ...plugins.map((plugin) => count(of.get(plugin)))];
  });
  const heads = ["Node", "Total", ...plugins];
  return [element("h3", {}, "The best nodes"), table("Scores of the best nodes", heads, rows, heads.map((_, i) => i).slice(1))];
}

function list(title, texts) {
  if (!texts?.length) return [];
  return [title ? element("h3", {}, title) : null, element("ul", {}, ...texts.map((text) => element("li", {}, text)))];
}

function about({ schedulerName, workload }) {
  const of = workload ? `${workload.kind} ${workload.name} · ` : "";
  return element("p", { class: "note" }, `${of}scheduler ${schedulerName}`);
}
