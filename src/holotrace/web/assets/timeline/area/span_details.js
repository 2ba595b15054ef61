// Fills the panel with details of the selected span: actions, totals, flame graph, and the busy time of each row.

import { ask } from "../data/server.js";
import { button } from "../elements.js";
import { AreaBox, areasOf, rowsIn, timesIn } from "./area.js";

/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").Span} Span */
/** @typedef {import("../../types.js").SpanAnswer} SpanAnswer */
/** @typedef {import("../timeline.js").Timeline} Timeline */

export class SpanDetails {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
  }

  /** @param {Span} span */
  async describe(span) {
    const { panel, rows, run, selection } = this.timeline;
    const ranks = this.timeline.ranks.filter((rank) => !span.rows || span.rows.has(rank.number));
    const answers = await Promise.all(ranks.map((rank) => this.inSpan(rank, span)));
    if (this.timeline.span === span) {
      const box = new AreaBox(run, areasOf(rows, ranks, span), (rank, event) => selection.point(rank, event));
      panel.span(span, ranks.map((rank, at) => [rank, answers[at]]), this.actions(), box.root);
      box.load();
    }
  }

  actions() {
    const { movement, overlays } = this.timeline;
    const how = "show the events that determine the length of this span";
    return [
      button("zoom to this span", "F", () => movement.fitSelected()),
      button("critical path of this span", how, () => overlays.pathOfSpan()),
    ];
  }

  /**
   * @param {Rank} rank
   * @param {Span} span
   * @returns {Promise<SpanAnswer>}
   */
  inSpan(rank, span) {
    const { rows: state, run } = this.timeline;
    const [start, end] = timesIn(rank, span);
    const rows = rowsIn(state, rank, span).join(",");
    return rows ? ask("span", { run, rank: rank.number, start, end, rows }) : Promise.resolve({ rows: [] });
  }
}
