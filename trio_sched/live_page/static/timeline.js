// Time, where all of it is there: a recording or a simulation is scrubbed forward and back, or played.

import { byId, element, fill, setText } from "./elements.js";
import { clock, duration } from "./format.js";
import { getJson } from "./connection.js";

const STEPS = 200;
const PLAYED_MS = 250;

export class Timeline {
  #slider = element("input", { type: "range", "aria-label": "Time", step: "any" });
  #play = element("button", { type: "button", onclick: () => this.toggle() });
  #said = element("output");
  #timer = 0;
  #isAsking = false;
  #wanted = null;

  constructor(cluster) {
    this.cluster = cluster;
    const button = (sign, title, steps) =>
      element("button", { type: "button", "aria-label": title, title, onclick: () => this.step(steps) }, sign);
    fill(byId("timeline"), button("|◀", "Back (,)", -1), this.#play, button("▶|", "Forward (.)", 1), this.#slider, this.#said);
    this.#slider.addEventListener("input", () => this.#go(Number(this.#slider.value)));
    cluster.addEventListener("change", () => this.#show());
    this.#setPlaying(false);
  }

  get isThere() {
    return Boolean(this.cluster.timeline);
  }

  /** Goes so many hundredths of two forward, or back. */
  step(steps) {
    const { begin, end } = this.cluster.timeline;
    this.#go(Number(this.#slider.value) + (steps * (end - begin)) / STEPS);
  }

  /** Plays, from the beginning if it is at the end; or stops. */
  toggle() {
    const isPlaying = this.#timer === 0;
    if (isPlaying && Number(this.#slider.value) >= this.cluster.timeline.end) this.#go(this.cluster.timeline.begin);
    this.#setPlaying(isPlaying);
  }

  #setPlaying(isPlaying) {
    clearInterval(this.#timer);
    this.#timer = isPlaying ? setInterval(() => this.#playOn(), PLAYED_MS) : 0;
    this.#play.textContent = isPlaying ? "⏸" : "▶";
    this.#play.title = isPlaying ? "Pause (Space)" : "Play (Space)";
    this.#play.setAttribute("aria-label", this.#play.title);
  }

  #playOn() {
    if (this.#isAsking) return;
    if (Number(this.#slider.value) >= this.cluster.timeline.end) this.#setPlaying(false);
    else this.step(1);
  }

  #show() {
    const { timeline, time } = this.cluster;
    byId("timeline").hidden = !timeline;
    if (!timeline) return;
    this.#slider.min = timeline.begin;
    this.#slider.max = timeline.end;
    if (!this.#isAsking) this.#slider.value = time;
    const said = `${clock(time, timeline.end)} · ${duration(time - timeline.begin)} of ${duration(timeline.end - timeline.begin)}`;
    setText(this.#said, said);
    this.#slider.setAttribute("aria-valuetext", said);
  }

  /** Asks for one state at a time; of the times wanted meanwhile only the last one is asked for. */
  async #go(time) {
    const { begin, end } = this.cluster.timeline;
    this.#wanted = Math.min(Math.max(time, begin), end);
    this.#slider.value = this.#wanted;
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      while (this.#wanted !== null) {
        const asked = this.#wanted;
        this.#wanted = null;
        this.cluster.load(await getJson("frame", { time: asked }), true);
      }
    } catch (error) {
      this.#setPlaying(false);
      setText(this.#said, error.message);
    } finally {
      this.#isAsking = false;
    }
  }
}
