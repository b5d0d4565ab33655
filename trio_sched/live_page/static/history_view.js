// The last hour: binds, attempts, queue, time to bind and preemptions as lines; plugins and reloads as tables.

import { Chart } from "./chart.js";
import { byId, element, fill, table } from "./elements.js";
import { clock, count, duration, rate } from "./format.js";
import { getJson } from "./connection.js";

const AGAIN_MS = 10_000;

export class HistoryView {
  #timer = 0;
  #asking = null;
  #tables = element("div", { class: "tables" });
  #note = element("p", { class: "state", hidden: true });

  constructor(cluster, theme) {
    this.cluster = cluster;
    const perSecond = (value) => rate(value);
    this.charts = [
      new Chart("Binds per second", [["binds", "binds"]], perSecond, theme),
      new Chart(
        "Attempts per second",
        [["scheduled", "attempts_scheduled"], ["unschedulable", "attempts_unschedulable"], ["error", "attempts_error"]],
        perSecond,
        theme,
      ),
      new Chart(
        "Pods in the queue",
        [["active", "active"], ["backoff", "backoff"], ["unschedulable", "unschedulable"], ["gated", "gated"]],
        count,
        theme,
      ),
      new Chart("Time to bind", [["p50", "bind_p50"], ["p99", "bind_p99"]], duration, theme),
      new Chart("Preemptions per second", [["preemptions", "preemptions"]], perSecond, theme),
    ];
    fill(byId("history"), this.#note, element("div", { class: "charts" }, ...this.charts.map((chart) => chart.whole)), this.#tables);
  }

  /** Asks for the history now and while it is shown. */
  start() {
    this.stop();
    this.#ask();
    this.#timer = setInterval(() => this.#ask(), AGAIN_MS);
  }

  stop() {
    clearInterval(this.#timer);
    this.#asking?.abort();
  }

  async #ask() {
    const asking = (this.#asking = new AbortController());
    try {
      const history = await getJson("history", {}, asking.signal);
      if (!asking.signal.aborted) this.#show(history);
    } catch (error) {
      if (!asking.signal.aborted) this.#say(error.message);
    }
  }

  #say(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
  }

  #show(history) {
    this.#say((history.seconds ?? []).length > 1 ? "" : "The history begins now; it has one value every ten seconds.");
    for (const chart of this.charts) chart.show(history);
    fill(this.#tables, ...this.#plugins(history.plugins ?? []), ...this.#reloads(history.reloads ?? []));
  }

  #plugins(plugins) {
    if (!plugins.length) return [];
    const rows = [...plugins]
      .sort((one, other) => other.failures - one.failures || other.p99 - one.p99)
      .map((plugin) => [plugin.name, plugin.point, duration(plugin.p50), duration(plugin.p99), failures(plugin.failures)]);
    const made = table("Plugins", ["Plugin", "Extension point", "p50", "p99", "Failures"], rows, [2, 3, 4]);
    return [element("section", {}, element("h2", {}, "Plugins"), made)];
  }

  #reloads(reloads) {
    if (!reloads.length) return [];
    const rows = reloads.toReversed().map((reload) => [
      clock(reload.time, this.cluster.now()),
      element("b", { class: reload.worked ? "good" : "bad" }, reload.worked ? "worked" : "failed"),
      (reload.changed ?? []).map((text) => element("div", {}, text)),
    ]);
    const made = table("Reloads of the configuration", ["Time", "Result", "What changed"], rows);
    return [element("section", {}, element("h2", {}, "Reloads"), made)];
  }
}

function failures(number) {
  return number > 0 ? element("b", { class: "bad" }, count(number)) : "0";
}
