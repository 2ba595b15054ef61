// The visible time range, and the layout of items from top to bottom.

import { clamp } from "../units.js";

/** @typedef {import("../types.js").Item} Item */
/** @typedef {import("../types.js").Rank} Rank */
/** @typedef {import("../types.js").Row} Row */
/** @typedef {import("../types.js").RowItem} RowItem */
/** @typedef {import("./rows/row_state.js").RowState} RowState */

/** Sizes in pixels. */
export const SIZES = { labels: 230, ruler: 34, lane: 17, head: 22, counter: 34, gap: 5, band: 20 };
const [NARROW, NARROW_LABELS, WIDE_LABELS] = [600, 132, SIZES.labels];

/**
 * Return the width of the labels beside a timeline of this width.
 * @param {number} width
 */
export const labelsWidth = (width) => (width < NARROW ? NARROW_LABELS : WIDE_LABELS);

const FIRST_COUNTERS = 3;
const MOST_PINNED = 0.6; // of the height; more pinned rows scroll with the others
const LEAST_NS = 20;

/**
 * Return a string that identifies an item: "3.row2" is row 2 of rank 3.
 * @param {Item} item
 */
export const keyOf = (item) => {
  const number = item.kind === "row" ? item.row.at : item.kind === "counter" ? item.counter.at : "";
  return `${item.rank.number}.${item.kind}${number}`;
};

export class View {
  constructor() {
    /** @type {Item[]} */
    this.items = [];
    this.bottom = 0;
    this.pinnedHeight = 0;
    this.scroll = 0;
    this.width = 0;
    this.height = 0;
    this.start = 0;
    this.end = 0;
    this.whole = { start: 0, end: 0 };
    this.isOpen = false; // true once the first rank has arrived
    this.wasMoved = false;
  }

  get length() {
    return this.end - this.start;
  }

  get pixels() {
    return this.width - SIZES.labels;
  }

  /** @param {number} ns */
  x(ns) {
    return SIZES.labels + ((ns - this.start) / this.length) * this.pixels;
  }

  /** @param {number} x */
  timeAt(x) {
    return this.start + ((x - SIZES.labels) / this.pixels) * this.length;
  }

  /** @param {number} top */
  y(top) {
    return SIZES.ruler + top - this.scroll;
  }

  /**
   * @param {Rank[]} ranks
   * @param {Set<string>} shown
   * @param {RowState} rows
   */
  arrange(ranks, shown, rows) {
    this.items = [];
    this.bottom = 0;
    this.arrangePinned(ranks, rows);
    for (const rank of ranks) {
      this.arrangeRank(rank, shown, rows);
    }
  }

  /**
   * Put the pinned rows first. They stay in place while other rows scroll, because their `top` includes the scroll
   * position.
   * @param {Rank[]} ranks
   * @param {RowState} rows
   */
  arrangePinned(ranks, rows) {
    const view = this;
    const pinned = rows.pinnedOf(ranks);
    const whole = pinned.reduce((sum, { row }) => sum + this.heightOf(row), 0);
    const isFixed = whole <= MOST_PINNED * (this.height - SIZES.ruler);
    for (const { rank, row } of pinned) {
      const offset = this.bottom;
      const height = this.heightOf(row);
      this.items.push({
        kind: "row",
        rank,
        row,
        height,
        isPinned: true,
        get top() {
          return offset + (isFixed ? view.scroll : 0);
        },
      });
      this.bottom += height;
    }
    this.pinnedHeight = isFixed ? this.bottom : 0;
  }

  /** @param {Row} row */
  heightOf(row) {
    return (row.isFolded ? 1 : row.lanes) * SIZES.lane + SIZES.gap;
  }

  /**
   * @param {Rank} rank
   * @param {Set<string>} shown
   * @param {RowState} state
   */
  arrangeRank(rank, shown, state) {
    /**
     * @param {object} item
     * @param {number} height
     */
    const put = (item, height) => {
      this.items.push(/** @type {Item} */ ({ ...item, top: this.bottom, height }));
      this.bottom += height;
    };
    const rows = state.shown(rank);
    const known = shown.has("counters") ? rank.counters : rank.counters.slice(0, FIRST_COUNTERS);
    const counters = known.filter((counter) => state.matches(`rank ${rank.number} ${counter.label}`));
    if (state.text && !rows.length && !counters.length) {
      return;
    }
    put({ kind: "rank", rank }, SIZES.head);
    if (rank.isFolded) {
      return;
    }
    for (const kind of ["path", "findings"].filter((overlay) => shown.has(overlay))) {
      put({ kind, rank }, SIZES.band + SIZES.gap);
    }
    counters.forEach((counter) => put({ kind: "counter", rank, counter }, SIZES.counter));
    rows.forEach((row) => put({ kind: "row", rank, row }, this.heightOf(row)));
  }

  /**
   * Return the smallest y at which an item is visible: below the ruler and, if the item is not pinned, also below the
   * pinned rows.
   * @param {Item} item
   */
  topOf(item) {
    return SIZES.ruler + (item.isPinned ? 0 : this.pinnedHeight);
  }

  /** @param {Item} item */
  isVisible(item) {
    return this.y(item.top) < this.height && this.y(item.top + item.height) > this.topOf(item);
  }

  /** @param {number} y */
  itemAt(y) {
    const at = y - SIZES.ruler + this.scroll;
    return y < SIZES.ruler ? undefined : this.items.find((item) => at >= item.top && at < item.top + item.height);
  }

  /**
   * Return the rows that are at least partly between two y coordinates: {number of the rank: numbers of its rows}.
   * @param {number} first
   * @param {number} second
   */
  rowsBetween(first, second) {
    const [above, below] = [Math.min(first, second), Math.max(first, second)];
    /** @type {Map<number, Set<number>>} */
    const rows = new Map();
    for (const item of this.items) {
      const from = Math.max(above, this.topOf(item));
      if (item.kind === "row" && this.y(item.top + item.height) > from && this.y(item.top) < below && from < below) {
        rows.set(item.rank.number, (rows.get(item.rank.number) ?? new Set()).add(item.row.at));
      }
    }
    return rows;
  }

  /**
   * @param {number} rank
   * @param {number} row
   */
  rowItem(rank, row) {
    const rows = /** @type {RowItem[]} */ (this.items.filter((item) => item.kind === "row"));
    return rows.find((item) => item.rank.number === rank && item.row.at === row);
  }

  /**
   * Return the key of the item `wanted`, and its distance in pixels from the upper edge of the scrolling rows. If
   * `wanted` is missing or pinned, use the item at the upper edge instead.
   * @param {Item} [wanted]
   */
  anchor(wanted) {
    const scrolling = this.items.filter(({ isPinned }) => !isPinned);
    const first = scrolling.find((item) => this.y(item.top + item.height) > this.topOf(item));
    const item = wanted && !wanted.isPinned ? wanted : first;
    return item ? { key: keyOf(item), away: item.top - this.pinnedHeight - this.scroll } : null;
  }

  /**
   * Scroll until the anchor's item is again at the distance from the upper edge that the anchor has stored. Return
   * whether the item still exists.
   * @param {{ key: string, away: number } | null} anchor
   */
  restore(anchor) {
    const item = anchor && this.items.find((candidate) => !candidate.isPinned && keyOf(candidate) === anchor.key);
    this.scroll = item ? item.top - this.pinnedHeight - anchor.away : this.scroll;
    return Boolean(item);
  }

  keepScroll() {
    this.scroll = clamp(this.scroll, 0, Math.max(0, this.bottom - (this.height - SIZES.ruler)));
  }

  get canScroll() {
    return this.bottom > this.height - SIZES.ruler;
  }

  /**
   * @param {number} start
   * @param {number} end
   */
  move(start, end) {
    const whole = this.whole.end - this.whole.start;
    const length = Math.min(Math.max(end - start, LEAST_NS), whole * 1.2 + LEAST_NS);
    const middle = clamp((start + end) / 2, this.whole.start - length / 2, this.whole.end + length / 2);
    this.start = middle - length / 2;
    this.end = middle + length / 2;
    this.wasMoved = true;
  }

  /**
   * Zoom around a pixel.
   * @param {number} factor
   * @param {number} x
   */
  zoom(factor, x) {
    const at = this.timeAt(clamp(x, SIZES.labels, this.width));
    this.move(at - (at - this.start) * factor, at + (this.end - at) * factor);
  }

  /** @param {number} share of the visible range */
  pan(share) {
    this.move(this.start + share * this.length, this.end + share * this.length);
  }

  /**
   * Return the y that a lane has when the view is not scrolled; undefined if the lane's row is not shown.
   * @param {number} rank
   * @param {number} row
   * @param {number} depth
   */
  laneTop(rank, row, depth) {
    const item = this.rowItem(rank, row);
    return item && item.top + (item.row.isFolded ? 0 : depth) * SIZES.lane;
  }

  /**
   * @param {number} rank
   * @param {number} row
   * @param {number} depth
   */
  shows(rank, row, depth) {
    const item = this.rowItem(rank, row);
    const top = this.laneTop(rank, row, depth);
    return item && top !== undefined && this.y(top) >= this.topOf(item) && this.y(top + SIZES.lane) <= this.height;
  }

  /**
   * Scroll as little as necessary to show a lane.
   * @param {number} rank
   * @param {number} row
   * @param {number} depth
   */
  nudge(rank, row, depth) {
    const top = this.laneTop(rank, row, depth);
    if (top !== undefined && !this.shows(rank, row, depth) && !this.rowItem(rank, row)?.isPinned) {
      const room = this.height - SIZES.ruler - SIZES.lane - SIZES.gap;
      this.scroll = clamp(this.scroll, top - Math.max(room, 0), top - this.pinnedHeight);
    }
  }

  /**
   * Scroll until a lane is in the middle of the view, unless it is already in view.
   * @param {number} rank
   * @param {number} row
   * @param {number} depth
   */
  reveal(rank, row, depth) {
    const top = this.laneTop(rank, row, depth);
    if (top !== undefined && !this.shows(rank, row, depth) && !this.rowItem(rank, row)?.isPinned) {
      this.scroll = top - (this.height - SIZES.ruler + this.pinnedHeight) / 2;
    }
  }
}
