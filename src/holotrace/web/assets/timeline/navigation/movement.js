// Moves the view to events, findings and times.

import { toAxis } from "../data/clocks.js";

/** @typedef {import("../../types.js").Place} Place */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../timeline.js").Timeline} Timeline */

const MOMENT_NS = 500_000;
const LEAST_MARGIN_NS = 1_000;

export class Movement {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
    this.view = timeline.view;
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  moveTo(start, end) {
    this.view.move(start, end);
    this.timeline.changed();
  }

  /**
   * Zoom to a time range; on either side, leave a margin of `share` times its length.
   * @param {number} start
   * @param {number} end
   * @param {number} [share]
   */
  showTimes(start, end, share = 1.5) {
    const margin = Math.max(end - start, LEAST_MARGIN_NS) * share;
    this.moveTo(start - margin, end + margin);
  }

  /**
   * Move a time range into view if it is outside; zoom only if it is longer than the view.
   * @param {number} start
   * @param {number} end
   */
  centre(start, end) {
    const { view } = this;
    if (end - start > view.length) {
      this.showTimes(start, end);
    } else if (start < view.start || end > view.end) {
      this.moveTo((start + end - view.length) / 2, (start + end + view.length) / 2);
    } else {
      this.timeline.changed();
    }
  }

  /**
   * Zoom and scroll to an event.
   * @param {number} number
   * @param {Place} place
   */
  show(number, place) {
    const rank = this.timeline.rankOf(number);
    if (rank) {
      const [, , start, length] = place;
      this.reveal(number, place);
      this.showTimes(toAxis(rank.clock, start), toAxis(rank.clock, start + length));
    }
  }

  /**
   * Scroll to the row of an event, and show the row if it is hidden or folded.
   * @param {number} number
   * @param {Place} place
   */
  reveal(number, [row, depth]) {
    const { timeline } = this;
    const rank = timeline.rankOf(number);
    const known = rank?.rows.find(({ at }) => at === row);
    if (rank && known) {
      rank.isFolded = false;
      timeline.top = null;
      timeline.rows.reveal(rank, known);
      timeline.arrange();
      this.view.reveal(number, row, depth);
    }
  }

  /**
   * @param {Rank} rank
   * @param {{ start: number, end: number, event?: number | null }} finding
   */
  goToFinding(rank, { start, end, event }) {
    const focus = { rank: rank.number, start: toAxis(rank.clock, start), end: toAxis(rank.clock, end) };
    this.timeline.focus = focus;
    const item = this.view.items.find((candidate) => candidate.rank === rank && !candidate.isPinned);
    if (item && !this.view.isVisible(item)) {
      this.view.scroll = item.top;
    }
    const margin = start === end ? MOMENT_NS : 0;
    this.showTimes(focus.start - margin, focus.end + margin);
    if (typeof event === "number") {
      this.timeline.selection.mark(rank.number, event);
    }
  }

  /**
   * Select an event and bring it into view; zoom only if the event is longer than the view.
   * @param {number} number
   * @param {Place} place
   */
  stepTo(number, place) {
    const { timeline } = this;
    const [row, depth, start, length, event] = place;
    const rank = timeline.rankOf(number);
    const folded = rank?.rows.find(({ at }) => at === row);
    if (rank && folded) {
      rank.isFolded = false;
      folded.isFolded = folded.isFolded && depth === 0;
      timeline.rows.reveal(rank, folded);
      timeline.top = null;
      timeline.arranged();
      this.view.reveal(number, row, depth);
      this.centre(toAxis(rank.clock, start), toAxis(rank.clock, start + length));
      timeline.selection.select(number, event);
    }
  }

  fitSelected() {
    const { selected, span } = this.timeline;
    if (span) {
      this.moveTo(span.start, span.end);
    } else if (selected?.at) {
      this.show(selected.rank, selected.at);
    }
  }

  fitAll() {
    if (this.view.isOpen) {
      this.moveTo(this.view.whole.start, this.view.whole.end);
    }
  }
}
