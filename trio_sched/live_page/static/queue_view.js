// The queue: how many pods are in each part of it, and the pending pods by cause, the largest group first, those without a
// cause by what they wait for. A group opens, a pod is a link.

import { QUEUES } from "./cluster.js";
import { byId, element, fill, oncePerFrame, setText } from "./elements.js";
import { age, count, counted } from "./format.js";
import { VirtualList } from "./virtual_list.js";

const GROUP_HEIGHT = 44;
const LONG_GROUP = { height: 62, letters: 36 }; // two lines of text
const POD_HEIGHT = 28;
const NOTE_HEIGHT = 28;
const FIRST_PODS = 5;

export class QueueView {
  #open = new Map(); // how many pods are shown of the groups that are open
  #first = undefined;
  #queue = null;
  #chips = [];
  #show = oncePerFrame(() => this.#showNow());

  constructor(cluster, address) {
    Object.assign(this, { cluster, address });
    this.list = new VirtualList(byId("pending"), (item) => this.#make(item), update);
    this.#chips = QUEUES.map((name, queue) => this.#chip(name, queue));
    fill(byId("queues"), ...this.#chips);
    cluster.addEventListener("change", this.#show);
    setInterval(this.#show, 1000);
  }

  #chip(name, queue) {
    const choose = () => {
      this.#queue = this.#queue === queue ? null : queue;
      this.#show();
    };
    return element("button", { type: "button", onclick: choose, "aria-pressed": "false" }, element("b"), element("span", {}, name));
  }

  #showNow() {
    const { cluster } = this;
    if (!cluster.time) return;
    const { queues, pending_left_out: leftOut } = cluster.summary;
    byId("queues").hidden = !queues;
    this.#chips.forEach((chip, queue) => {
      setText(chip.firstChild, count(queues?.[queue] ?? 0));
      chip.setAttribute("aria-pressed", this.#queue === queue);
      chip.classList.toggle("none", !queues?.[queue]);
    });
    const groups = groupsOf(cluster, this.#queue);
    this.#first = groups[0]?.key;
    const most = Math.max(...groups.map((group) => group.count));
    const items = groups.flatMap((group, index) => this.#itemsOf(group, most, index === 0));
    if (leftOut > 0) items.push({ key: "left out", kind: "note", height: NOTE_HEIGHT, text: leftOutText(leftOut) });
    this.list.show(items);
    byId("pending").hidden = !items.length;
    byId("no-pending").hidden = items.length > 0;
    const part = QUEUES[this.#queue];
    const none = cluster.summary.shards ? "No pod waits for this replica." : "No pod is pending: every pod has a node.";
    setText(byId("no-pending"), part ? `No pod is in this part of the queue: ${part}.` : none);
  }

  /** Until the reader opens or closes one, a few pods of the largest group are shown, so that all causes are in sight. */
  #itemsOf(group, most, isFirst) {
    const shown = this.#open.get(group.key) ?? (isFirst && !this.#open.size ? FIRST_PODS : 0);
    const height = group.text.length > LONG_GROUP.letters ? LONG_GROUP.height : GROUP_HEIGHT;
    const head = { key: group.key, kind: "group", height, group, isOpen: shown > 0, share: group.count / most };
    const pods = group.rows.slice(0, shown).map((row) => this.#podItem(row));
    const more = group.rows.length - pods.length;
    if (!pods.length || !more) return [head, ...pods];
    return [head, ...pods, { key: `more ${group.key}`, kind: "more", height: NOTE_HEIGHT, group, text: `Show ${count(more)} more` }];
  }

  #podItem(row) {
    const { pending } = this.cluster;
    const [namespace, name] = [pending.namespace[row], pending.name[row]];
    return {
      key: `pod ${pending.id[row]}`,
      kind: "pod",
      height: POD_HEIGHT,
      namespace,
      name,
      href: this.address.link({ pod: `${namespace}/${name}` }),
      priority: pending.priority[row] || 0,
      attempts: pending.attempts[row] || 0,
      age: age(pending.since[row], this.cluster.now()),
      note: [pending.node[row] && `on ${pending.node[row]}`, pending.group[row] && `group ${pending.group[row]}`]
        .filter(Boolean)
        .join(", "),
    };
  }

  #make(item) {
    if (item.kind === "note") return element("p", { class: "note" });
    if (item.kind === "pod") return madePod(item);
    const show = (most) => {
      // The one that is open by itself stays so.
      if (this.#first && !this.#open.size) this.#open.set(this.#first, FIRST_PODS);
      this.#open.set(item.group.key, most);
      this.#showNow();
    };
    if (item.kind === "more") {
      return element("div", { class: "more" }, element("button", { type: "button", onclick: () => show(Infinity) }));
    }
    const toggle = ({ currentTarget }) => show(currentTarget.getAttribute("aria-expanded") === "true" ? 0 : Infinity);
    return element(
      "div",
      { class: "group" },
      element(
        "button",
        { type: "button", onclick: toggle },
        element("b", { class: "text" }),
        element("b", { class: "number" }),
        element("span", { class: "below" }, element("span"), element("span", { "aria-hidden": "true" })),
        element("i", { class: "share", "aria-hidden": "true" }),
      ),
    );
  }
}

function madePod({ href, namespace, name }) {
  const link = element("a", { href, title: `${namespace}/${name}` }, element("span", {}, namespace, "/"), name);
  return element("div", { class: "pod" }, link, element("span"), element("span"), element("span"));
}

/** Shows what may have changed of an item. */
function update(made, item) {
  if (item.kind === "note") return setText(made, item.text);
  if (item.kind === "more") return setText(made.firstChild, item.text);
  if (item.kind === "group") return updateGroup(made.firstChild, item);
  const [link, priority, attempts, since] = made.children;
  if (link.getAttribute("href") !== item.href) link.setAttribute("href", item.href);
  setText(priority, item.note || count(item.priority));
  priority.title = `${item.note}${item.note && "; "}priority ${item.priority}`;
  setText(attempts, `${item.attempts}×`);
  attempts.title = counted(item.attempts, "attempt");
  setText(since, item.age);
}

function updateGroup(button, { group, isOpen, share }) {
  const [text, number, below, bar] = button.children;
  button.setAttribute("aria-expanded", isOpen);
  setText(text, group.text);
  text.title = group.text;
  setText(number, count(group.count));
  setText(below.firstChild, group.plugins);
  setText(below.lastChild, isOpen ? "priority · tries · age" : "");
  bar.style.width = `${100 * share}%`;
}

function leftOutText(leftOut) {
  return `${counted(leftOut, "more pod")} of lower priority or younger: not listed, but counted.`;
}

const WITHOUT_CAUSE = [
  "Not tried yet",
  "Tried again soon",
  "Not placed, without a cause that is known",
  "Gated: something has to let it in",
  "Placed, waits for a plugin's permission",
  "Being bound",
  "Waits for the rest of its group",
];

/**
 * `[{key, text, plugins, count, rows}]`; *queue*, if not null, is the only one that counts.
 *
 * A cause's own count holds pods whose rows were not sent; it is used while all queues are shown.
 */
export function groupsOf(cluster, queue) {
  const { pending, causes } = cluster;
  const known = new Map(causes.map((cause) => [cause.id, cause]));
  const groups = new Map();
  for (let row = 0; row < pending.length; row++) {
    if (queue !== null && pending.queue[row] !== queue) continue;
    const cause = known.get(pending.cause[row]);
    const key = cause ? `cause ${cause.id}` : `queue ${pending.queue[row]}`;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = begin(key, cause, pending.queue[row])));
    group.rows.push(row);
  }
  for (const cause of queue === null ? causes : []) {
    const key = `cause ${cause.id}`;
    if (cause.count > 0 && !groups.has(key)) groups.set(key, begin(key, cause));
  }
  for (const group of groups.values()) {
    group.count = Math.max(group.rows.length, queue === null ? group.count : 0);
    group.rows.sort((one, other) => pending.priority[other] - pending.priority[one] || pending.since[one] - pending.since[other]);
  }
  return [...groups.values()].sort((one, other) => other.isCause - one.isCause || other.count - one.count || (one.text < other.text ? -1 : 1));
}

function begin(key, cause, queue = 0) {
  return {
    key,
    isCause: Number(Boolean(cause)),
    text: cause?.text ?? WITHOUT_CAUSE[queue] ?? "Pending",
    plugins: cause?.plugins?.join(", ") || (cause ? "" : (QUEUES[queue] ?? "")),
    count: cause?.count ?? 0,
    rows: [],
  };
}
