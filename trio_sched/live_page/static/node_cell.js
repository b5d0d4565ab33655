// How one node is drawn. Its cell: the colour is its share, marks say what is wrong, large cells have name and bars. And for
// a moment what happens there: a frame narrows onto the cell for a pod that comes, widens for one that leaves, and stands
// around a node that is new.

import { CORDONED, NOT_READY } from "./cluster.js";
import { stepOf, STEPS } from "./colours.js";
import { percent } from "./format.js";

const NAME = { width: 50, height: 24 };
const WORDS_HEIGHT = 30;
const BAR_HEIGHT = 5;

/** A context's rectangle in whole pixels, so that edges are sharp, with a gap to the next cell. */
export function rectangle(x, y, width, height) {
  const [left, top] = [Math.round(x), Math.round(y)];
  const gap = Math.min(width, height) >= 14 ? 2 : Math.min(width, height) >= 4 ? 1 : 0;
  return [left, top, Math.max(1, Math.round(x + width) - left - gap), Math.max(1, Math.round(y + height) - top - gap)];
}

/** Draws cells with the colours `steps`, `page`, `rule`, `bad`. */
export class CellPainter {
  constructor(context, cluster, colours) {
    Object.assign(this, { context, cluster, ...colours });
  }

  /** Draws the node of *row* with a *share* in thousandths into the *box* of `rectangle`. */
  draw(row, share, box) {
    const [x, y, width, height] = box;
    const { context } = this;
    const flags = this.cluster.nodes.flags[row];
    const step = stepOf(share);
    const { fill, ink } = this.steps[step] ?? { fill: this.card, ink: this.ink };
    context.fillStyle = flags & NOT_READY ? this.page : fill;
    context.fillRect(x, y, width, height);
    if (flags & NOT_READY) this.#cross(x, y, width, height);
    else if (flags & CORDONED) this.#stripes(x, y, width, height, ink);
    else if (step < 0 && width > 3) this.#outline(x, y, width, height, this.rule, 1);
    if (width >= NAME.width && height >= NAME.height) this.#words(row, share, box, flags & NOT_READY ? this.ink : ink);
  }

  #outline(x, y, width, height, colour, line) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = line;
    this.context.strokeRect(x + line / 2, y + line / 2, width - line, height - line);
  }

  #cross(x, y, width, height) {
    const { context } = this;
    const line = width >= 8 ? 2 : 1;
    this.#outline(x, y, width, height, this.bad, line);
    context.beginPath();
    if (width < NAME.width) {
      context.moveTo(x, y);
      context.lineTo(x + width, y + height);
    }
    const corner = Math.min(width, height, 24);
    const [right, top] = width < NAME.width ? [x + width, y] : [x + width, y + height - corner];
    context.moveTo(right, top);
    context.lineTo(right - (width < NAME.width ? width : corner), width < NAME.width ? y + height : top + corner);
    if (width >= NAME.width) {
      context.moveTo(right - corner, top);
      context.lineTo(right, top + corner);
    }
    context.stroke();
  }

  #stripes(x, y, width, height, ink) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = ink;
    context.globalAlpha = width >= NAME.width ? 0.35 : 0.75;
    context.lineWidth = width >= 8 ? 1.5 : 1;
    const distance = Math.max(3, Math.min(8, width / 2));
    context.beginPath();
    for (let offset = distance / 2; offset < width + height; offset += distance) {
      context.moveTo(x + offset, y);
      context.lineTo(x + offset - height, y + height);
    }
    context.stroke();
    context.restore();
  }

  #words(row, share, [x, y, width, height], ink) {
    const { context, cluster } = this;
    const nodes = cluster.nodes;
    context.save();
    context.beginPath();
    context.rect(x, y, width - 3, height);
    context.clip();
    context.fillStyle = ink;
    context.textBaseline = "top";
    context.font = "11px system-ui, sans-serif";
    const value = nodes.flags[row] & NOT_READY ? "not ready" : percent(share);
    const isOneLine = height < 34;
    const valueWidth = context.measureText(value).width;
    context.fillText(shortened(context, nodes.name[row], width - 9 - (isOneLine ? valueWidth + 4 : 0)), x + 4, y + 4);
    context.font = "600 11px system-ui, sans-serif";
    if (isOneLine) context.fillText(value, x + width - valueWidth - 6, y + 4);
    else context.fillText(value + (nodes.flags[row] & CORDONED ? " cordoned" : ""), x + 4, y + 17);
    const most = Math.floor((height - WORDS_HEIGHT) / BAR_HEIGHT);
    if (most > 0 && !(nodes.flags[row] & NOT_READY)) this.#bars(row, most, x + 4, y + height, width - 8);
    context.restore();
  }

  /** CPU, memory, pods and the first devices, from top to bottom. */
  #bars(row, most, x, bottom, width) {
    const { context, cluster } = this;
    const nodes = cluster.nodes;
    const shares = [nodes.cpu[row], nodes.memory[row], (1000 * nodes.pods[row]) / nodes.pod_limit[row]];
    for (let device = 0; device < Math.min(cluster.devices.length, 2); device++) shares.push(nodes[`device_${device}`][row]);
    const known = shares.filter((share) => Number.isFinite(share)).slice(0, most);
    known.forEach((share, index) => {
      const top = bottom - BAR_HEIGHT * (known.length - index) - 1;
      context.globalAlpha = 0.25;
      context.fillRect(x, top, width, 3);
      context.globalAlpha = 0.9;
      context.fillRect(x, top, (width * Math.min(share, 1000)) / 1000, 3);
    });
    context.globalAlpha = 1;
  }
}

/** The end of a name tells nodes apart, so the beginning is what is left out. */
function shortened(context, name, width) {
  if (context.measureText(name).width <= width) return name;
  let kept = name.slice(-40);
  while (kept && context.measureText(`…${kept}`).width > width) kept = kept.slice(1);
  return `…${kept}`;
}

/** The colours of a page for a painter. */
export function coloursOf(theme, steps) {
  const names = ["page", "ink", "soft", "rule", "card", "bad", "focus"];
  return { steps, beyond: steps[STEPS], ...Object.fromEntries(names.map((name) => [name, theme.colour(`--${name}`)])) };
}

const LASTS_MS = 700;
const CALM = matchMedia("(prefers-reduced-motion: reduce)");

export class NodeFlashes {
  #flashes = new Map();
  #frame = 0;
  #drawn = [];

  /** *boxOf* gives the box of a row on the screen, or null if it is not seen; *colours* those of a painter. */
  constructor(context, boxOf, colours) {
    Object.assign(this, { context, boxOf, colours });
  }

  /** Shows what happened on *row*: `bound`, `left`, `evicted` or `born`. */
  add(row, kind) {
    if (CALM.matches) return;
    this.#flashes.set(row, { kind, begin: performance.now() });
    this.#frame ||= requestAnimationFrame((time) => this.#draw(time));
  }

  /** Forgets all: rows are other nodes from now on, or elsewhere. */
  clear() {
    this.#erase();
    this.#flashes.clear();
  }

  #erase() {
    for (const [x, y, width, height] of this.#drawn) this.context.clearRect(x - 5, y - 5, width + 10, height + 10);
    this.#drawn = [];
  }

  #draw(time) {
    this.#frame = 0;
    this.#erase();
    const { context } = this;
    const { ink, beyond, bad, focus } = this.colours();
    const colours = { bound: ink, left: beyond.fill, evicted: bad, born: focus };
    for (const [row, { kind, begin }] of this.#flashes) {
      const share = (time - begin) / LASTS_MS;
      if (share >= 1) {
        this.#flashes.delete(row);
        continue;
      }
      const box = this.boxOf(row);
      if (!box) continue;
      const [x, y, width, height] = box;
      const most = Math.min(width, height) < 20 ? 1.5 : 3;
      const off = kind === "bound" ? most * (1 - share) : kind === "born" ? most : most * share;
      context.setLineDash(kind === "evicted" ? [3, 2] : []);
      context.globalAlpha = 1 - Math.max(0, share);
      context.strokeStyle = colours[kind];
      context.lineWidth = most === 3 ? 2 : 1.25;
      context.strokeRect(x - off, y - off, width + 2 * off, height + 2 * off);
      this.#drawn.push(box);
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    if (this.#flashes.size) this.#frame = requestAnimationFrame((next) => this.#draw(next));
  }
}
