// A list of any length of which only what is seen has elements. An item keeps its element while it is seen, so that the
// focus, and a click that has begun, stay with it while items move.

import { element, oncePerFrame } from "./elements.js";

const BEYOND = 6;

export class VirtualList {
  #elements = new Map();
  #items = [];
  #tops = [0];
  #room = element("div", { class: "room", role: "list" });

  /**
   * Shows items in *scroller*.
   *
   * `make(item)` makes an element, `update(element, item)` shows the item of now; an item has a `key` and a `height`.
   */
  constructor(scroller, make, update) {
    Object.assign(this, { scroller, make, update });
    scroller.append(this.#room);
    const draw = oncePerFrame(() => this.#draw());
    scroller.addEventListener("scroll", draw, { passive: true });
    scroller.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(draw).observe(scroller);
  }

  show(items) {
    this.#items = items;
    this.#tops = [0];
    for (const item of items) this.#tops.push(this.#tops.at(-1) + item.height);
    this.#room.style.height = `${this.#tops.at(-1)}px`;
    this.#draw();
  }

  #draw() {
    const { scrollTop, clientHeight } = this.scroller;
    const begin = Math.max(0, this.#indexAt(scrollTop) - BEYOND);
    const end = Math.min(this.#items.length, this.#indexAt(scrollTop + clientHeight) + 1 + BEYOND);
    const seen = new Map();
    for (let index = begin; index < end; index++) {
      const item = this.#items[index];
      let made = this.#elements.get(item.key);
      if (!made) {
        made = this.make(item);
        made.setAttribute("role", "listitem");
        this.#room.append(made);
      }
      this.#elements.delete(item.key);
      seen.set(item.key, made);
      made.style.transform = `translateY(${this.#tops[index]}px)`;
      made.style.height = `${item.height}px`;
      made.setAttribute("aria-posinset", index + 1);
      made.setAttribute("aria-setsize", this.#items.length);
      this.update(made, item);
    }
    for (const gone of this.#elements.values()) gone.remove();
    this.#elements = seen;
  }

  /** The item at a height, by halving. */
  #indexAt(height) {
    let [low, high] = [0, this.#items.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#tops[middle] <= height) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Up and down go from item to item, as reading order has them, not the order of their elements. */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const key = [...this.#elements].find(([, made]) => made.contains(event.target))?.[0];
    if (!step || key === undefined) return;
    event.preventDefault();
    const index = this.#items.findIndex((item) => item.key === key) + step;
    if (index < 0 || index >= this.#items.length) return;
    const [top, bottom] = [this.#tops[index], this.#tops[index + 1]];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (bottom > this.scroller.scrollTop + this.scroller.clientHeight) {
      this.scroller.scrollTop = bottom - this.scroller.clientHeight;
    }
    this.#draw();
    const target = this.#elements.get(this.#items[index].key);
    target?.querySelector("a, button")?.focus({ preventScroll: true });
  }
}
