// What the page knows of the scheduler: the last snapshot, with all changes since; and what the colour of a node can stand
// for: the share of CPU, memory, pods or a device kind that is requested.

/** Rows with ids, kept as columns: numbers in typed arrays (NaN for null), texts in arrays; it is what the stream sends. */
export class Rows {
  #rowOfId = new Map();
  #numbers;
  #texts;

  constructor(numbers, texts) {
    this.#numbers = ["id", ...numbers];
    this.#texts = texts;
    this.clear();
  }

  clear() {
    this.length = 0;
    this.#rowOfId.clear();
    for (const name of this.#numbers) this[name] = new Float64Array(64);
    for (const name of this.#texts) this[name] = [];
  }

  rowOf(id) {
    return this.#rowOfId.get(id);
  }

  /** Adds a row for each entry of `columns.id`. */
  add(columns) {
    const ids = columns.id ?? [];
    const begin = this.length;
    this.#reserve(begin + ids.length);
    for (const name of this.#numbers) {
      const target = this[name];
      const values = columns[name];
      for (let i = 0; i < ids.length; i++) target[begin + i] = values?.[i] ?? NaN;
    }
    for (const name of this.#texts) {
      const target = this[name];
      const values = columns[name];
      for (let i = 0; i < ids.length; i++) target[begin + i] = String(values?.[i] ?? "");
    }
    for (let i = 0; i < ids.length; i++) this.#rowOfId.set(ids[i], begin + i);
    this.length += ids.length;
  }

  /** Removes rows; the last ones take their places, so rows are other rows afterwards. */
  remove(ids) {
    for (const id of ids) {
      const row = this.#rowOfId.get(id);
      if (row === undefined) continue;
      this.#rowOfId.delete(id);
      const last = --this.length;
      if (row !== last) this.#rowOfId.set(this.id[last], row);
      for (const name of this.#numbers) this[name][row] = this[name][last];
      for (const name of this.#texts) {
        this[name][row] = this[name][last];
        this[name].length = last;
      }
    }
  }

  /** Changes values of the column *name*, and calls *each* with the row, the old and the new value. */
  change(name, [ids, values], each = () => {}) {
    const column = this[name];
    const isNumber = this.#numbers.includes(name);
    if (!isNumber && !this.#texts.includes(name)) return;
    for (let i = 0; i < ids.length; i++) {
      const row = this.#rowOfId.get(ids[i]);
      if (row === undefined) continue;
      const old = column[row];
      column[row] = isNumber ? (values[i] ?? NaN) : String(values[i] ?? "");
      each(row, old, column[row]);
    }
  }

  #reserve(length) {
    const room = this.id.length;
    if (length <= room) return;
    for (const name of this.#numbers) {
      const larger = new Float64Array(Math.max(length, room * 2));
      larger.set(this[name]);
      this[name] = larger;
    }
  }
}

export const CORDONED = 1;
export const NOT_READY = 2;
export const TAINTED = 4;
export const QUEUES = ["Active", "Backoff", "Unschedulable", "Gated", "Permit", "Binding", "Gang"];

const MOST_DEVICES = 8;
const DEVICE_COLUMNS = Array.from({ length: MOST_DEVICES }, (_, i) => `device_${i}`);

/** What changed: `isWhole` all of it, `isLayout` which nodes there are, else `rows` of nodes; `pods` is row -> ±pods, `evicted` rows. */
class Change extends Event {
  isWhole = false;
  isLayout = false;
  isPending = false;
  rows = new Set();
  pods = new Map();
  evicted = new Set();
  born = [];

  constructor() {
    super("change");
  }
}

/** Sends `change` after each message. */
export class Cluster extends EventTarget {
  nodes = new Rows(["zone", "pool", "flags", "cpu", "memory", "pods", "pod_limit", "evicted", "shard", ...DEVICE_COLUMNS], ["name"]);
  pending = new Rows(["queue", "priority", "since", "attempts", "cause"], ["namespace", "name", "group", "node"]);
  zones = [];
  pools = [];
  devices = [];
  causes = [];
  summary = {};
  source = {};
  timeline = null;
  time = 0;
  #received = 0;

  /** Takes a *snapshot*. With *isStep* it follows on what is known, so nodes with more or fewer pods are told. */
  load(snapshot, isStep = false) {
    const before = new Map();
    for (let row = 0; isStep && row < this.nodes.length; row++)
      before.set(this.nodes.name[row], [this.nodes.pods[row], this.nodes.evicted[row]]);
    const change = new Change();
    change.isWhole = change.isLayout = change.isPending = true;
    this.nodes.clear();
    this.pending.clear();
    this.zones = this.pools = this.devices = this.causes = [];
    this.summary = {};
    this.source = snapshot.source ?? this.source;
    this.timeline = snapshot.timeline ?? this.timeline;
    this.#takeRest(snapshot);
    this.nodes.add(snapshot.nodes ?? {});
    this.pending.add(snapshot.pending ?? {});
    for (let row = 0; isStep && row < this.nodes.length; row++) {
      const [pods, evicted] = before.get(this.nodes.name[row]) ?? [];
      if (this.nodes.pods[row] - pods) change.pods.set(row, this.nodes.pods[row] - pods);
      if (this.nodes.evicted[row] > evicted) change.evicted.add(row);
    }
    this.dispatchEvent(change);
  }

  /** Takes what changed since the message before. */
  apply(delta) {
    const change = new Change();
    this.#takeRest(delta);
    const { nodes, pending } = delta;
    for (const [name, columns] of Object.entries(nodes?.changed ?? {})) {
      this.nodes.change(name, columns, (row, old, value) => {
        change.rows.add(row);
        if (name === "pods") change.pods.set(row, value - old);
        else if (name === "evicted" && value > old) change.evicted.add(row);
        else if (name === "zone" || name === "pool") change.isLayout = true;
      });
    }
    if (nodes?.removed?.length || nodes?.added?.id?.length) {
      change.isLayout = true;
      this.nodes.remove(nodes.removed ?? []);
      change.born = nodes.added?.id ?? [];
      this.nodes.add(nodes.added ?? {});
      change.pods.clear();
      change.evicted.clear();
    }
    for (const [name, columns] of Object.entries(pending?.changed ?? {})) this.pending.change(name, columns);
    this.pending.remove(pending?.removed ?? []);
    this.pending.add(pending?.added ?? {});
    change.isPending = Boolean(pending || delta.causes);
    this.dispatchEvent(change);
  }

  /** The scheduler's time, in seconds: that of the last message and what has passed since. */
  now() {
    return this.timeline ? this.time : this.time + (performance.now() - this.#received) / 1000;
  }

  /** The parameters that ask for details of the time that is shown. */
  get when() {
    return this.timeline ? { time: this.time } : {};
  }

  /** The row of the node *name*, or -1. */
  nodeRow(name) {
    return this.nodes.name.indexOf(name);
  }

  #takeRest(message) {
    this.time = message.time ?? this.time;
    this.#received = performance.now();
    for (const name of ["zones", "pools", "devices", "causes"]) this[name] = message[name] ?? this[name];
    Object.assign(this.summary, message.summary);
  }
}

const FIXED = [
  { key: "highest", title: "Highest", words: "the highest share" },
  { key: "cpu", title: "CPU", words: "CPU" },
  { key: "memory", title: "Memory", words: "memory" },
  { key: "pods", title: "Pods", words: "pods of the limit" },
];

/** All measures of *cluster*: `key` for the address, `title`, `words`, and for devices their `column`. */
export function measuresOf(cluster) {
  const devices = cluster.devices.map((name, index) => ({
    key: name,
    title: name.slice(name.lastIndexOf("/") + 1),
    words: name,
    column: `device_${index}`,
  }));
  return [...FIXED, ...devices];
}

/** A function from a row to its share in thousandths, NaN where a node has nothing of it. */
export function shareOf(cluster, measure) {
  const nodes = cluster.nodes;
  const pods = (row) => (nodes.pod_limit[row] > 0 ? (1000 * nodes.pods[row]) / nodes.pod_limit[row] : NaN);
  if (measure.column) return (row) => nodes[measure.column][row];
  if (measure.key === "pods") return pods;
  if (measure.key !== "highest") return (row) => nodes[measure.key][row];
  const columns = ["cpu", "memory", ...cluster.devices.map((_, index) => `device_${index}`)];
  return (row) => {
    let highest = pods(row);
    for (const name of columns) {
      const share = nodes[name][row];
      if (share > highest || Number.isNaN(highest)) highest = share;
    }
    return highest;
  };
}
