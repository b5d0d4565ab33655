// Which part of the map is seen, and how large: wheel, drag, pinch of a touchpad or with two fingers, and keys.

const MOST = 40;

/** Sends `change` after each move; `scale`, `x` and `y` are those of the origin of the map on the screen. */
export class Viewport extends EventTarget {
  scale = 1;
  x = 0;
  y = 0;
  width = 0;
  height = 0;
  contentHeight = 0;
  wasDragged = false;
  #target;
  #pointers = new Map(); // by id: where each that is down is, and where the last of them went down

  constructor(target) {
    super();
    this.#target = target;
    target.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    target.addEventListener("pointerdown", (event) => this.#down(event));
  }

  /** The room on the screen, and the height of all there is. */
  resize(width, height, contentHeight) {
    Object.assign(this, { width, height, contentHeight });
    this.#settle();
  }

  get least() {
    return Math.min(1, this.height / Math.max(this.contentHeight, 1));
  }

  /** Zooms by *factor* around a point of the screen, which stays where it is. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, this.least), MOST);
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.#settle();
  }

  showAll() {
    this.scale = 0;
    this.#settle();
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.#settle();
  }

  /** Moves as far as a rectangle of the map needs to be seen. */
  reveal(x, y, width, height) {
    const [left, top] = [x * this.scale + this.x, y * this.scale + this.y];
    const [right, bottom] = [left + width * this.scale, top + height * this.scale];
    this.move(
      left < 0 ? -left : Math.min(0, this.width - right),
      top < 0 ? -top : Math.min(0, this.height - bottom),
    );
  }

  /** Keeps the map within the room: nothing is ever scrolled out of sight. */
  #settle() {
    this.scale = Math.min(Math.max(this.scale, this.least), MOST);
    this.x = Math.min(0, Math.max(this.x, this.width - this.width * this.scale));
    this.y = Math.min(0, Math.max(this.y, this.height - Math.max(this.contentHeight * this.scale, this.height)));
    // Over the whole map a finger scrolls the page.
    this.#target.classList.toggle("zoomed", this.scale > this.least);
    this.dispatchEvent(new Event("change"));
  }

  #wheel(event) {
    // On a page that scrolls, the wheel over the whole map scrolls on.
    if (event.deltaY > 0 && this.scale <= this.least && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), event.offsetX, event.offsetY);
  }

  #down(event) {
    if (event.button !== 0) return;
    const [x, y] = [event.clientX, event.clientY];
    this.#pointers.set(event.pointerId, { x, y, startX: x, startY: y });
    if (this.#pointers.size > 1) return;
    this.wasDragged = false;
    const ended = new AbortController();
    const options = { signal: ended.signal };
    const up = (one) => {
      this.#pointers.delete(one.pointerId);
      if (!this.#pointers.size) ended.abort();
    };
    addEventListener("pointermove", (one) => this.#moved(one), options);
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, up, options);
  }

  #moved(event) {
    const was = this.#pointers.get(event.pointerId);
    if (!was) return;
    const now = { ...was, x: event.clientX, y: event.clientY };
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) this.#pinch(was, now, other);
    else if (this.scale > this.least) {
      if (!this.wasDragged && Math.hypot(now.x - was.startX, now.y - was.startY) < 4) return;
      if (!this.wasDragged) this.#target.setPointerCapture(event.pointerId);
      this.wasDragged = true;
      this.move(now.x - was.x, now.y - was.y);
    }
    this.#pointers.set(event.pointerId, now);
  }

  /** One of two fingers moves: what is between them stays between them. */
  #pinch(was, now, other) {
    this.wasDragged = true;
    const { left, top } = this.#target.getBoundingClientRect();
    const distance = (one) => Math.max(Math.hypot(one.x - other.x, one.y - other.y), 1);
    this.move((now.x - was.x) / 2, (now.y - was.y) / 2);
    this.zoom(distance(now) / distance(was), (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top);
  }
}
