// Requests the slices, counters and critical path of the visible range and, once, the findings.

import { fromAxis } from "./clocks.js";
import { ask, lanesOf, pathOf } from "./server.js";
import { keyOf } from "../view.js";
import { clamp } from "../../units.js";

/** @typedef {import("../../types.js").Counter} Counter */
/** @typedef {import("../../types.js").Finding} Finding */
/** @typedef {import("../../types.js").Item} Item */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Series} Series */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {{ run: string, rank: number, start: number, end: number, pixels: number }} Query */
/**
 * @typedef {object} Actions
 * @property {() => void} drawn
 * @property {() => void} answered the slices of a rank have arrived, or the request failed
 * @property {() => void} arranged
 * @property {(text: string) => void} say
 * @property {() => void} pathKnown
 * @property {() => void} findingsKnown
 */

const FINDINGS = ["idle", "waiting", "advice"];
const SETTLED_MS = 30;

export class Loader {
  /**
   * @param {Timeline} state
   * @param {Actions} actions
   */
  constructor(state, { drawn, answered, arranged, say, pathKnown, findingsKnown }) {
    this.state = state;
    this.view = state.view;
    this.drawn = drawn;
    this.answered = answered;
    this.arranged = arranged;
    this.say = say;
    this.pathKnown = pathKnown;
    this.findingsKnown = findingsKnown;
    this.timer = 0;
    this.begun = ""; // the request of `first`, until the next load
  }

  close() {
    window.clearTimeout(this.timer);
    this.state.ranks.forEach((rank) => rank.request?.abort());
  }

  /** Load the visible range after the view has not moved for `SETTLED_MS`. */
  later() {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.loadAll(), SETTLED_MS);
  }

  loadAll() {
    const { begun } = this;
    this.begun = "";
    this.state.ranks.filter((rank) => this.wanted(rank) !== begun).forEach((rank) => this.load(rank));
  }

  /**
   * Load the first rank immediately. `later` would load it only after all other ranks have been added, because each
   * added rank restarts the timer of `later`.
   * @param {Rank} rank
   */
  first(rank) {
    this.begun = this.wanted(rank);
    this.load(rank);
  }

  /**
   * Return a string that identifies the requests that `load` would send now.
   * @param {Rank} rank
   */
  wanted(rank) {
    const { pattern, shown } = this.state;
    return JSON.stringify([this.query(rank), this.visible(rank).map(keyOf), pattern, [...shown]]);
  }

  /** @param {Rank} rank */
  visible(rank) {
    return this.view.items.filter((item) => item.rank === rank && this.view.isVisible(item));
  }

  /**
   * Return the visible range on the clock of the rank, extended by a quarter on either side.
   * @param {Rank} rank
   * @returns {Query}
   */
  query(rank) {
    const { start, end, length, pixels } = this.view;
    const first = Math.floor(start - length / 4 - rank.offset);
    return {
      run: this.state.run,
      rank: rank.number,
      start: first,
      end: Math.max(Math.ceil(end + length / 4 - rank.offset), first + 1),
      pixels: clamp(Math.round(pixels * 1.5), 16, 8192),
    };
  }

  /** @param {Rank} rank */
  async load(rank) {
    rank.request?.abort();
    rank.request = new AbortController();
    const { signal } = rank.request;
    const items = this.visible(rank);
    const query = this.query(rank);
    try {
      await this.slices(rank, items, query, signal);
      this.answered();
      await this.counters(rank, items, query, signal);
      await this.path(rank, items, query, signal);
    } catch (error) {
      const { message, name } = /** @type {Error} */ (error);
      if (name !== "AbortError") {
        this.say(message);
        this.answered();
      }
    }
  }

  /**
   * @param {Rank} rank
   * @param {Item[]} items
   * @param {Query} query
   * @param {AbortSignal} signal
   */
  async slices(rank, items, query, signal) {
    const rows = items.flatMap((item) => (item.kind === "row" ? [item.row.at] : [])).join(",");
    if (rows) {
      rank.lanes = lanesOf(await ask("slices", { ...query, rows, text: this.state.pattern }, { signal }));
      this.drawn();
      this.listCounters(rank);
    }
  }

  /**
   * Request the list of counters; this happens after the rank's first slices, to avoid delaying them.
   * @param {Rank} rank
   */
  async listCounters(rank) {
    if (rank.hasCounters) {
      return;
    }
    rank.hasCounters = true;
    const shown = new Set(rank.rows.map((row) => row.device));
    try {
      /** @type {Omit<Counter, "at">[]} */
      const known = await ask("counters", { run: this.state.run, rank: rank.number });
      const numbered = known.map((counter, at) => ({ ...counter, at }));
      rank.counters = numbered.filter(({ device }) => device === null || shown.has(device));
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
    rank.isArranged = true; // the rank's rows no longer move
    this.arranged();
  }

  /**
   * @param {Rank} rank
   * @param {Item[]} items
   * @param {Query} query
   * @param {AbortSignal} signal
   */
  async counters(rank, items, query, signal) {
    const counters = items.flatMap((item) => (item.kind === "counter" ? [item.counter] : []));
    if (counters.length) {
      const numbers = counters.map((counter) => counter.at).join(",");
      /** @type {Series[]} */
      const answers = await ask("counter", { ...query, numbers }, { signal });
      for (const counter of counters) {
        const series = answers.find((answer) => answer.number === counter.at);
        counter.series = series && { ...series, end: query.end };
      }
      this.drawn();
    }
  }

  /**
   * @param {Rank} rank
   * @param {Item[]} items
   * @param {Query} query
   * @param {AbortSignal} signal
   */
  async path(rank, items, query, signal) {
    if (!this.state.shown.has("path") || !items.length) {
      return;
    }
    /** @param {string} text */
    const waiting = (text) => this.say(`critical path of rank ${rank.number}: ${text}`);
    const of = this.pathWindow(rank);
    rank.path = pathOf(await ask("path", { ...query, ...of }, { signal, waiting }));
    this.say("");
    this.pathKnown();
    this.drawn();
  }

  /**
   * Return the time window for the critical path: the selected span or else the selected steps; if neither is selected,
   * the analysis uses its default.
   * @param {Rank} rank
   * @returns {Record<string, string | number>}
   */
  pathWindow(rank) {
    const { pathSpan, steps } = this.state;
    if (pathSpan) {
      const [from, to] = [pathSpan.start, pathSpan.end].map((time) => fromAxis(rank.clock, time));
      return { from: Math.floor(from), to: Math.ceil(to) };
    }
    return steps ? { steps } : {};
  }

  /** @param {Rank} rank */
  async findings(rank) {
    if (rank.findings) {
      return;
    }
    rank.findings = [];
    for (const kind of FINDINGS) {
      /** @param {string} text */
      const waiting = (text) => this.say(`findings of rank ${rank.number}: ${text}`);
      try {
        const query = { run: this.state.run, rank: rank.number, among: this.state.among, kind };
        /** @type {Omit<Finding, "kind">[]} */
        const findings = await ask("findings", query, { waiting });
        rank.findings.push(...findings.map((finding) => ({ ...finding, kind })));
        this.say("");
      } catch (error) {
        this.say(/** @type {Error} */ (error).message);
      }
      this.findingsKnown();
    }
  }
}
