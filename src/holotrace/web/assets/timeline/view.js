"use strict";

// Which time is in view, and where everything stands from top to bottom.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const SIZES = { labels: 230, ruler: 34, lane: 17, head: 22, counter: 34, gap: 5, band: 20 };
  const FIRST_COUNTERS = 3;
  const LEAST_NS = 20;

  class View {
    constructor() {
      this.items = [];
      this.bottom = 0;
      this.scroll = 0;
      this.width = 0;
      this.height = 0;
      this.start = null; // until the first rank is there
      this.end = null;
      this.whole = null;
      this.wasMoved = false;
    }

    get isOpen() {
      return this.start !== null;
    }

    get length() {
      return this.end - this.start;
    }

    get pixels() {
      return this.width - SIZES.labels;
    }

    x(ns) {
      return SIZES.labels + ((ns - this.start) / this.length) * this.pixels;
    }

    timeAt(x) {
      return this.start + ((x - SIZES.labels) / this.pixels) * this.length;
    }

    y(top) {
      return SIZES.ruler + top - this.scroll;
    }

    // Give everything its place from top to bottom.
    arrange(ranks, shown) {
      this.items = [];
      this.bottom = 0;
      const put = (item, height) => {
        this.items.push({ ...item, top: this.bottom, height });
        this.bottom += height;
      };
      for (const rank of ranks) {
        put({ kind: "rank", rank }, SIZES.head);
        if (rank.isFolded) {
          continue;
        }
        ["path", "findings"].filter((kind) => shown.has(kind)).forEach((kind) => put({ kind, rank }, SIZES.band + SIZES.gap));
        const counters = shown.has("counters") ? rank.counters : rank.counters.slice(0, FIRST_COUNTERS);
        counters.forEach((counter) => put({ kind: "counter", rank, counter }, SIZES.counter));
        for (const row of rank.rows) {
          put({ kind: "row", rank, row }, (row.isFolded ? 1 : row.lanes) * SIZES.lane + SIZES.gap);
        }
      }
    }

    isVisible(item) {
      return this.y(item.top) < this.height && this.y(item.top + item.height) > SIZES.ruler;
    }

    itemAt(y) {
      const at = y - SIZES.ruler + this.scroll;
      return y < SIZES.ruler ? undefined : this.items.find((item) => at >= item.top && at < item.top + item.height);
    }

    // The rows between two heights, by rank: number -> set of rows.
    rowsBetween(first, second) {
      const [above, below] = [Math.min(first, second), Math.max(first, second)];
      const rows = new Map();
      for (const item of this.items) {
        if (item.kind === "row" && this.y(item.top + item.height) > above && this.y(item.top) < below) {
          rows.set(item.rank.number, (rows.get(item.rank.number) || new Set()).add(item.row.at));
        }
      }
      return rows;
    }

    rowItem(rank, row) {
      return this.items.find((item) => item.kind === "row" && item.rank.number === rank && item.row.at === row);
    }

    keepScroll() {
      this.scroll = timeline.words.clamp(this.scroll, 0, Math.max(0, this.bottom - (this.height - SIZES.ruler)));
    }

    get canScroll() {
      return this.bottom > this.height - SIZES.ruler;
    }

    move(start, end) {
      const { clamp } = timeline.words;
      const whole = this.whole.end - this.whole.start;
      const length = Math.min(Math.max(end - start, LEAST_NS), whole * 1.2 + LEAST_NS);
      const middle = clamp((start + end) / 2, this.whole.start - length / 2, this.whole.end + length / 2);
      this.start = middle - length / 2;
      this.end = middle + length / 2;
      this.wasMoved = true;
    }

    zoom(factor, x) {
      const at = this.timeAt(timeline.words.clamp(x, SIZES.labels, this.width));
      this.move(at - (at - this.start) * factor, at + (this.end - at) * factor);
    }

    pan(share) {
      this.move(this.start + share * this.length, this.end + share * this.length);
    }

    // Scroll so that a lane is in view.
    reveal(rank, row, depth) {
      const item = this.rowItem(rank, row);
      const top = item && item.top + depth * SIZES.lane;
      if (item && (this.y(top) < SIZES.ruler || this.y(top + SIZES.lane) > this.height)) {
        this.scroll = top - (this.height - SIZES.ruler) / 2;
      }
    }
  }

  timeline.SIZES = SIZES;
  timeline.View = View;
})();
