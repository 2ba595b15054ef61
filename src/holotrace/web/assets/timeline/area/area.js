// Summarises the selected span of time on the selected rows: totals by name, and a flame graph of the host.

import * as address from "../../shell/address.js";
import { fromAxis } from "../data/clocks.js";
import { ask } from "../data/server.js";
import { element } from "../elements.js";
import { FlameGraph } from "./flame_graph.js";
import { totalsTable } from "./totals_table.js";

/** @typedef {import("../../types.js").FlamesAnswer} FlamesAnswer */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Span} Span */
/** @typedef {import("../../types.js").TotalsAnswer} TotalsAnswer */
/** @typedef {import("../rows/row_state.js").RowState} RowState */
/** @typedef {(rank: number, event: number) => void} ShowEvent */

const FIRST_ORDER = "self_ns";

/**
 * Return the numbers of the rows in a span: the selected rows or, if no rows are selected, all shown rows of the rank.
 * @param {RowState} state
 * @param {Rank} rank
 * @param {Span} span
 */
export const rowsIn = (state, rank, { rows }) =>
  rows
    ? [...(rows.get(rank.number) ?? [])]
    : rank.rows.filter((row) => state.isPinned(rank, row) || state.shown(rank).includes(row)).map(({ at }) => at);

/**
 * Return the start and end of a span on the clock of a rank, at least 1 ns apart.
 * @param {Rank} rank
 * @param {Span} span
 */
export const timesIn = (rank, { start, end }) => {
  const first = Math.floor(fromAxis(rank.clock, start));
  return [first, Math.max(Math.ceil(fromAxis(rank.clock, end)), first + 1)];
};

/**
 * Return the text that describes a span to the server. For each rank that has rows in the span, it contains the times
 * on the rank's clock and the numbers of the rows: RANK:START:END:ROWS;…
 * @param {RowState} state
 * @param {Rank[]} ranks
 * @param {Span} span
 */
export const areasOf = (state, ranks, span) =>
  ranks
    .map((rank) => ({ rank, rows: rowsIn(state, rank, span) }))
    .filter(({ rows }) => rows.length)
    .map(({ rank, rows }) => [rank.number, ...timesIn(rank, span), address.rangesOf(rows)].join(":"))
    .join(";");

export class AreaBox {
  /**
   * @param {string} run
   * @param {string} areas
   * @param {ShowEvent} showEvent
   */
  constructor(run, areas, showEvent) {
    this.run = run;
    this.areas = areas;
    this.showEvent = showEvent;
    this.root = element("div", "holotrace-area");
    this.totals = element("div");
    this.flames = element("div");
    this.root.append(this.totals, this.flames);
  }

  /** Request the totals, then the flame graph, which takes longer. */
  async load() {
    if (!this.areas) {
      this.totals.replaceChildren(element("p", "", "This span contains no shown rows."));
      return;
    }
    await this.sort(FIRST_ORDER);
    await this.put(this.flames, "flame graph", async (waiting) => {
      /** @type {FlamesAnswer} */
      const answer = await ask("flames", { run: this.run, areas: this.areas }, { waiting });
      return answer.paths.length ? new FlameGraph(answer, this.showEvent).root : null;
    });
  }

  /** @param {string} by */
  async sort(by) {
    await this.put(this.totals, "totals", async (waiting) => {
      /** @type {TotalsAnswer} */
      const answer = await ask("totals", { run: this.run, areas: this.areas, by }, { waiting });
      return totalsTable(answer, by, { sort: (column) => this.sort(column), showEvent: this.showEvent });
    });
    /** @type {HTMLElement | null} */ (this.totals.querySelector("[data-is-focused]"))?.focus();
  }

  /**
   * Show the result of a request in a box; while waiting, show the server's progress, and after a failure, the reason.
   * @param {HTMLElement} box
   * @param {string} name
   * @param {(waiting: (text: string) => void) => Promise<HTMLElement | null>} make
   */
  async put(box, name, make) {
    /** @param {string} text */
    const say = (text) => box.replaceChildren(element("p", "", `${name}: ${text}`));
    try {
      const made = await make(say);
      box.replaceChildren(...(made ? [made] : []));
    } catch (error) {
      say(/** @type {Error} */ (error).message);
    }
  }
}
