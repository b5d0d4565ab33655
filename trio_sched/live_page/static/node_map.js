// The nodes as cells on a canvas. What changed is drawn before the next picture, cell by cell; all of it only when the
// layout, the part that is seen, or the colours change. A second canvas above it has the flashes.

import { measuresOf, shareOf } from "./cluster.js";
import { scale } from "./colours.js";
import { byId, oncePerFrame } from "./elements.js";
import { count } from "./format.js";
import { CellPainter, coloursOf, NodeFlashes, rectangle } from "./node_cell.js";
import { layOut } from "./node_layout.js";
import { ownNodes } from "./shards.js";
import { Viewport } from "./viewport.js";

const DIMMED = 0.78;

/** Sends `open` with `name`, `point` with `row` and where it is, and `focusnode` with `row`. */
export class NodeMap extends EventTarget {
  #base = byId("base");
  #overlay = byId("overlay");
  #dirty = new Set();
  #isAllDirty = true;
  #groupOf = new Map();
  #layout = { groups: [], cellWidth: 0, cellHeight: 0, height: 0 };
  #matches = null;
  #shards = undefined;
  #isOwn = null;
  #wasDrawn = false;
  #draw = oncePerFrame(() => this.#drawNow());
  focused = "";

  constructor(cluster, theme) {
    super();
    Object.assign(this, { cluster, theme });
    this.context = this.#base.getContext("2d", { alpha: false });
    this.view = new Viewport(this.#base);
    this.flashes = new NodeFlashes(this.#overlay.getContext("2d"), (row) => this.boxOf(row), () => this.painter);
    this.use("highest");
    theme.addEventListener("change", () => this.#colour());
    cluster.addEventListener("change", (change) => this.#take(change));
    this.view.addEventListener("change", () => this.#drawAll());
    new ResizeObserver(() => this.#resize()).observe(this.#base.parentElement);
    this.#base.addEventListener("pointermove", (event) => this.#point(event));
    this.#base.addEventListener("pointerleave", () => this.#tell("point", { row: -1 }));
    this.#base.addEventListener("click", (event) => this.#click(event));
    this.#base.addEventListener("keydown", (event) => this.#key(event));
    this.#base.addEventListener("blur", () => this.#drawAll());
  }

  /** Colours the nodes by the measure with this *key*; the highest share, if there is none. */
  use(key) {
    const measures = measuresOf(this.cluster);
    this.measure = measures.find((one) => one.key === key) ?? measures[0];
    this.share = shareOf(this.cluster, this.measure);
    this.#colour();
  }

  /** Dims all nodes but those whose names hold the *words*; none, if there are no words. */
  highlight(words) {
    this.#matches = words.length ? (name) => words.every((word) => name.includes(word)) : null;
    this.#drawAll();
  }

  /** Dims the nodes of other replicas, or does not any more; returns whether it does. */
  toggleOthers() {
    this.#isOwn = this.#isOwn ? null : ownNodes(this.cluster);
    this.#drawAll();
    return this.#isOwn !== null;
  }

  /** Marks the node *name* and moves it into sight. */
  focus(name) {
    this.focused = name;
    const place = this.#place(this.cluster.nodeRow(name));
    if (place) this.view.reveal(place.x, place.y, this.#layout.cellWidth, this.#layout.cellHeight);
    this.#drawAll();
  }

  /** The box of a row on the screen; null if it is not seen. */
  boxOf(row) {
    const place = this.#place(row);
    if (!place) return null;
    const { scale: by, x, y, width, height } = this.view;
    const box = rectangle(place.x * by + x, place.y * by + y, this.#layout.cellWidth * by, this.#layout.cellHeight * by);
    return box[0] < width && box[1] < height && box[0] + box[2] > 0 && box[1] + box[3] > 0 ? box : null;
  }

  #place(row) {
    const group = this.#groupOf.get(row);
    if (!group) return null;
    const index = group.indexOf.get(row);
    const column = index % group.perRow;
    return {
      x: group.x + column * this.#layout.cellWidth,
      y: group.y + ((index - column) / group.perRow) * this.#layout.cellHeight,
    };
  }

  #rowAt(x, y) {
    const { cellWidth, cellHeight, groups } = this.#layout;
    const [mapX, mapY] = [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
    for (const group of groups) {
      const column = Math.floor((mapX - group.x) / cellWidth);
      const line = Math.floor((mapY - group.y) / cellHeight);
      if (column < 0 || column >= group.perRow || line < 0) continue;
      const row = group.rows[line * group.perRow + column];
      if (row !== undefined) return row;
    }
    return -1;
  }

  #take(change) {
    if (change.isWhole) this.use(this.measure.key);
    if (this.#shards !== this.cluster.summary.shards) this.#takeShards();
    if (change.isLayout) this.#arrange();
    else {
      for (const row of change.rows) this.#dirty.add(row);
      if (change.rows.size) this.#draw();
    }
    for (const [row, more] of change.pods) if (more) this.flashes.add(row, more > 0 ? "bound" : "left");
    for (const row of change.evicted) this.flashes.add(row, "evicted");
    for (const id of change.born) this.flashes.add(this.cluster.nodes.rowOf(id), "born");
  }

  /** Other nodes may be this replica's own now. */
  #takeShards() {
    this.#shards = this.cluster.summary.shards;
    if (!this.#isOwn) return;
    this.#isOwn = ownNodes(this.cluster);
    this.#drawAll();
  }

  #arrange() {
    const { width, height } = this.view;
    this.flashes.clear();
    this.#layout = width ? layOut(this.cluster, width, height) : this.#layout;
    this.#groupOf.clear();
    for (const group of this.#layout.groups) {
      group.indexOf = new Map(group.rows.map((row, index) => [row, index]));
      for (const row of group.rows) this.#groupOf.set(row, group);
    }
    this.view.resize(width, height, this.#layout.height);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#base.parentElement;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    for (const canvas of [this.#base, this.#overlay]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      canvas.getContext("2d").scale(ratio, ratio);
    }
    Object.assign(this.view, { width, height });
    this.#arrange();
    this.#drawNow(); // setting the size has emptied it
  }

  #colour() {
    this.steps = scale(this.theme.isDark);
    this.painter = new CellPainter(this.context, this.cluster, coloursOf(this.theme, this.steps));
    this.#drawAll();
    this.#tell("coloured");
  }

  #drawAll() {
    this.#isAllDirty = true;
    this.#draw();
  }

  #drawNow() {
    const { context } = this;
    if (this.#isAllDirty) {
      this.flashes.clear();
      context.fillStyle = this.painter.page;
      context.fillRect(0, 0, this.view.width, this.view.height);
      for (const group of this.#layout.groups) {
        this.#drawLabel(group);
        for (const row of group.rows) this.#drawCell(row);
      }
    } else {
      for (const row of this.#dirty) this.#drawCell(row);
    }
    this.#drawFocus();
    this.#isAllDirty = false;
    this.#dirty.clear();
    if (!this.#wasDrawn && this.#layout.groups.length) {
      this.#wasDrawn = true;
      performance.mark("nodes drawn");
    }
  }

  #drawCell(row) {
    const box = this.boxOf(row);
    if (!box) return;
    this.painter.draw(row, this.share(row), box);
    const isFound = !this.#matches || this.#matches(this.cluster.nodes.name[row]);
    if (isFound && (!this.#isOwn || this.#isOwn(row))) return;
    this.context.globalAlpha = DIMMED;
    this.context.fillStyle = this.painter.page;
    this.context.fillRect(...box);
    this.context.globalAlpha = 1;
  }

  #drawLabel(group) {
    const { context, view } = this;
    const y = group.y * view.scale + view.y - 4;
    const x = group.x * view.scale + view.x;
    if (y < -20 || y > view.height + 20) return;
    context.save();
    context.beginPath();
    context.rect(x, y - 16, group.width * view.scale, 20);
    context.clip();
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "alphabetic";
    context.fillStyle = this.painter.soft;
    context.fillText(`${group.label} · ${count(group.rows.length)}`, Math.max(x, 0), y);
    context.restore();
  }

  #drawFocus() {
    const box = this.focused && this.boxOf(this.cluster.nodeRow(this.focused));
    if (!box) return;
    const [x, y, width, height] = box;
    const { ink, page } = this.painter;
    // Two lines, so that one of them is seen on any colour.
    [[page, 5], [ink, 3]].forEach(([colour, line]) => {
      this.context.strokeStyle = colour;
      this.context.lineWidth = line;
      this.context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
    });
  }

  #point(event) {
    const row = this.#rowAt(event.offsetX, event.offsetY);
    this.#base.classList.toggle("over", row >= 0);
    this.#tell("point", { row, x: event.offsetX, y: event.offsetY });
  }

  #click(event) {
    const row = this.#rowAt(event.offsetX, event.offsetY);
    if (row >= 0 && !this.view.wasDragged) this.#open(row);
  }

  #open(row) {
    if (row < 0) return;
    this.focus(this.cluster.nodes.name[row]);
    this.#tell("open", { name: this.focused });
  }

  #key(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) this.#step(step);
    else if (event.key === "Enter" && this.focused) this.#open(this.cluster.nodeRow(this.focused));
    else return;
    event.preventDefault();
  }

  /** Goes to the next cell in a direction, over the gaps between groups. */
  #step([dx, dy]) {
    const here = this.cluster.nodeRow(this.focused);
    const place = this.#place(here);
    let next = place ? -1 : (this.#layout.groups[0]?.rows[0] ?? -1);
    const { cellWidth, cellHeight } = this.#layout;
    const { scale: by, x, y } = this.view;
    for (let far = 1; next < 0 && far < 400; far++) {
      const stride = far === 1 ? 1 : 1 + (far - 1) / 2;
      const [mapX, mapY] = [place.x + cellWidth * (0.5 + dx * stride), place.y + cellHeight * (0.5 + dy * stride)];
      next = this.#rowAt(mapX * by + x, mapY * by + y);
    }
    if (next < 0) return;
    this.focus(this.cluster.nodes.name[next]);
    this.#tell("focusnode", { row: next });
  }

  #tell(name, values = {}) {
    this.dispatchEvent(Object.assign(new Event(name), values));
  }
}
