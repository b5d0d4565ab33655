// A line chart on a canvas: lines that differ in colour and in dashes, numbers below it for the time under the pointer.

import { element, oncePerFrame, setText } from "./elements.js";
import { clock } from "./format.js";

const MARGIN = { left: 46, right: 8, top: 8, bottom: 18 };
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];
const COLOURS = ["--one", "--two", "--three", "--four"];
const HEIGHT = 150;

export class Chart {
  #canvas = element("canvas", { role: "img", tabindex: "0" });
  #numbers = element("ul", { class: "keys" });
  #time = element("span", { class: "note" });
  #at = -1;
  #data = { seconds: [], lines: [] };
  #draw = oncePerFrame(() => this.#drawNow());

  /** *lines* are `[title, name of the series]`; *words* makes a text of a value. */
  constructor(title, lines, words, theme) {
    Object.assign(this, { title, lines, words, theme });
    this.whole = element("figure", {}, element("figcaption", {}, title, this.#time), this.#canvas, this.#numbers);
    this.keys = lines.map(([name], index) => {
      const dash = DASHES[index].length ? "dashed" : "solid";
      const value = element("b");
      this.#numbers.append(element("li", {}, element("i", { class: `key line-${index} ${dash}` }), name, " ", value));
      return value;
    });
    theme.addEventListener("change", this.#draw);
    new ResizeObserver(this.#draw).observe(this.#canvas.parentElement);
    this.#canvas.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.#canvas.addEventListener("pointerleave", () => this.#choose(-1));
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  show({ seconds = [], series = {} }) {
    this.#data = { seconds, lines: this.lines.map(([, name]) => series[name] ?? []) };
    this.#draw();
  }

  #point(x) {
    const { seconds } = this.#data;
    const room = this.#canvas.clientWidth - MARGIN.left - MARGIN.right;
    this.#choose(Math.min(Math.max(Math.round(((x - MARGIN.left) / room) * (seconds.length - 1)), 0), seconds.length - 1));
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = this.#data.seconds.length - 1;
    this.#choose(Math.min(Math.max((this.#at < 0 ? last : this.#at) + step, 0), last));
  }

  #choose(index) {
    this.#at = index;
    this.#draw();
  }

  #drawNow() {
    const { seconds, lines } = this.#data;
    const width = this.#canvas.parentElement.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.#canvas.width = width * ratio;
    this.#canvas.height = HEIGHT * ratio;
    this.#canvas.style.height = `${HEIGHT}px`;
    const context = this.#canvas.getContext("2d");
    context.scale(ratio, ratio);
    const most = roundedUp(Math.max(...lines.flat().filter(Number.isFinite), 0));
    const x = (index) => MARGIN.left + ((width - MARGIN.left - MARGIN.right) * index) / Math.max(seconds.length - 1, 1);
    const y = (value) => HEIGHT - MARGIN.bottom - ((HEIGHT - MARGIN.top - MARGIN.bottom) * value) / most;
    this.#axes(context, width, most, x, y);
    lines.forEach((values, line) => this.#line(context, line, values, x, y));
    if (this.#at >= 0) {
      context.fillStyle = this.theme.colour("--soft");
      context.fillRect(x(this.#at), MARGIN.top, 1, HEIGHT - MARGIN.top - MARGIN.bottom);
    }
    this.#say();
  }

  #axes(context, width, most, x, y) {
    const { seconds } = this.#data;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = this.theme.colour("--soft");
    context.strokeStyle = this.theme.colour("--rule");
    context.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      const level = Math.round(y(most * share)) + 0.5;
      context.beginPath();
      context.moveTo(MARGIN.left, level);
      context.lineTo(width - MARGIN.right, level);
      context.stroke();
      context.textAlign = "right";
      context.fillText(this.words(most * share), MARGIN.left - 5, level + 4);
    }
    const last = seconds.length - 1;
    for (const [index, align] of [[0, "left"], [Math.round(last / 2), "center"], [last, "right"]]) {
      if (last < 1) break;
      context.textAlign = align;
      context.fillText(clock(seconds[index], seconds[last]).slice(-8, -3), x(index), HEIGHT - 4);
    }
  }

  #line(context, line, values, x, y) {
    context.strokeStyle = this.theme.colour(COLOURS[line]);
    context.lineWidth = 1.75;
    context.setLineDash(DASHES[line]);
    context.beginPath();
    let isDrawing = false;
    values.forEach((value, index) => {
      if (!Number.isFinite(value)) isDrawing = false;
      else if (isDrawing) context.lineTo(x(index), y(value));
      else {
        context.moveTo(x(index), y(value));
        isDrawing = true;
      }
    });
    context.stroke();
    context.setLineDash([]);
  }

  /** The numbers of the chosen time, or of the last one. */
  #say() {
    const { seconds, lines } = this.#data;
    const at = this.#at >= 0 ? this.#at : seconds.length - 1;
    const texts = lines.map((values) => this.words(values[at] ?? NaN));
    this.keys.forEach((key, line) => setText(key, texts[line]));
    setText(this.#time, this.#at >= 0 ? clock(seconds[at], seconds.at(-1)) : "now");
    const said = this.lines.map(([name], line) => `${name} ${texts[line]}`).join(", ");
    this.#canvas.setAttribute("aria-label", `${this.title}, ${this.#time.textContent}: ${said}`);
  }
}

/** The next of 1, 2, 5, 10, 20, …, so that the labels are round. */
function roundedUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
