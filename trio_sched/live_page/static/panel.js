// The panel at the side, for a node or a pod: opened by the address, closed by Escape, asked for again while it is open.

import { byId, element, fill } from "./elements.js";

const AGAIN_MS = 3000;

export class Panel {
  #dialog = byId("panel");
  #before = null;
  #asking = null;
  #timer = 0;
  #title = element("h2", { id: "panel-title", tabindex: "-1" });
  #body = element("div", { class: "body" });

  /** *close* is called when the reader closes it. */
  constructor(close) {
    const button = element("button", { type: "button", "aria-label": "Close", title: "Close (Escape)", onclick: close }, "✕");
    fill(this.#dialog, element("header", {}, this.#title, button), this.#body);
  }

  /**
   * Shows what *load* gets, as *draw* makes it into elements; again every few seconds if *isLive*.
   *
   * Another title is another thing: it gets the focus, which goes back to where it was once the panel closes.
   */
  open(title, { load, draw, waiting, isLive }) {
    this.#stop();
    if (!this.#dialog.open) {
      this.#before = document.activeElement;
      this.#dialog.show();
    }
    this.#title.textContent = title;
    this.#title.title = title;
    this.#title.focus({ preventScroll: true });
    fill(this.#body, element("p", { class: "state" }, waiting));
    this.#body.scrollTop = 0;
    this.#ask(load, draw, isLive);
  }

  close() {
    this.#stop();
    if (!this.#dialog.open) return;
    this.#dialog.close();
    this.#before?.focus?.({ preventScroll: true });
  }

  async #ask(load, draw, isLive) {
    const asking = new AbortController();
    this.#asking = asking;
    try {
      const got = await load(asking.signal);
      if (asking.signal.aborted) return;
      // A selection, or the focus on something within, is not taken away.
      if (!this.#isUsed()) fill(this.#body, ...draw(got));
    } catch (error) {
      if (asking.signal.aborted) return;
      fill(this.#body, element("p", { class: "state bad", role: "alert" }, error.message));
    }
    if (isLive) this.#timer = setTimeout(() => this.#ask(load, draw, isLive), AGAIN_MS);
  }

  #isUsed() {
    const selection = getSelection();
    const isSelecting = !selection.isCollapsed && this.#body.contains(selection.anchorNode);
    return isSelecting || this.#body.contains(document.activeElement);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }
}
