// The stream of the scheduler's messages, and requests. The browser connects again by itself; where it gives up, the page
// does. All addresses are relative to the page, so that it works behind any proxy.

import { byId } from "./elements.js";
import { age } from "./format.js";

const AGAIN_MS = 5000;

export class Connection {
  #cluster;
  #source = null;
  #isLost = false;
  #line = byId("connection");

  constructor(cluster) {
    this.#cluster = cluster;
    this.#say("Connecting to the scheduler…");
    this.#open();
    setInterval(() => this.#isLost && this.#cluster.time && this.#sayLost(), 1000);
  }

  #open() {
    this.#source?.close();
    const source = new EventSource("ui/stream");
    this.#source = source;
    source.addEventListener("snapshot", (event) => {
      this.#isLost = false;
      this.#line.hidden = true;
      document.body.classList.remove("lost");
      this.#cluster.load(JSON.parse(event.data));
      // All of a recording is there from the beginning, its states are asked for one by one.
      if (this.#cluster.timeline) source.close();
    });
    source.addEventListener("delta", (event) => this.#cluster.apply(JSON.parse(event.data)));
    source.addEventListener("error", () => this.#lost(source));
  }

  #lost(source) {
    this.#isLost = true;
    document.body.classList.add("lost");
    this.#sayLost();
    if (source.readyState !== EventSource.CLOSED) return;
    this.#explain();
    setTimeout(() => this.#open(), AGAIN_MS);
  }

  #sayLost() {
    if (!this.#cluster.time) this.#say("The scheduler cannot be reached; trying again…");
    else this.#say(`The connection is lost; trying again. This is how it was ${age(this.#cluster.time, this.#cluster.now())} ago.`);
  }

  /** An EventSource does not tell why it was refused; the same question by fetch does. */
  async #explain() {
    const response = await fetch("ui/history").catch(() => null);
    if (response && !response.ok && !this.#cluster.time) this.#say(refusal(response.status));
  }

  #say(text) {
    this.#line.textContent = text;
    this.#line.hidden = false;
  }
}

/** The JSON at *path*. Throws an Error whose message says what the scheduler, or the network, said. */
export async function getJson(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(`ui/${path}${query && "?"}${query}`, { signal, headers: { Accept: "application/json" } });
  if (response.ok) return response.json();
  const said = await response.json().catch(() => null);
  throw new Error(typeof said?.error === "string" ? said.error : refusal(response.status));
}

export function refusal(status) {
  if (status === 401) return "The scheduler does not know who asks: log in, or send a token with the request (401).";
  if (status === 403) return "You may not see this: it takes the right to get /ui and /ui/* (403).";
  return `The scheduler answered with status ${status}.`;
}
