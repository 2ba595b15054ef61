// Draws the timeline on its canvas.

import { clockText } from "../data/clocks.js";
import * as colours from "./colours.js";
import { drawArrows, drawJumps } from "./connections.js";
import { drawFlags } from "./flag_marks.js";
import { drawGrid, drawRuler } from "./ruler.js";
import { drawButtons } from "../rows/row_marks.js";
import { shortLabel } from "../rows/row_state.js";
import { SIZES } from "../view.js";
import { amountText, countText } from "../../units.js";

/** @typedef {import("../../types.js").CounterItem} CounterItem */
/** @typedef {import("../../types.js").Interval} Interval */
/** @typedef {import("../../types.js").Item} Item */
/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../../types.js").RowItem} RowItem */
/** @typedef {import("../../types.js").Slice} Slice */
/** @typedef {import("../timeline.js").Timeline} Timeline */

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export class Painter {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Timeline} state
   */
  constructor(canvas, state) {
    this.canvas = canvas;
    this.state = state;
    this.view = state.view;
    this.sizes = SIZES;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.theme = colours.theme();
    this.characterWidth = 0;
  }

  /** Fit the canvas to the size of the view; return whether the size changed. */
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.view.width, this.view.height].map((length) => Math.round(length * ratio));
    if (this.canvas.width === width && this.canvas.height === height) {
      return false;
    }
    [this.canvas.width, this.canvas.height] = [width, height];
    this.canvas.style.width = `${this.view.width}px`;
    this.canvas.style.height = `${this.view.height}px`;
    return true;
  }

  paint() {
    const { view } = this;
    const ratio = window.devicePixelRatio || 1;
    const { pen } = this;
    this.theme = colours.theme();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.fill(0, 0, view.width, view.height, this.theme.paper);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.characterWidth = pen.measureText("abcdefghij(ABCDE:_0123").width / 22;
    this.within(0, this.sizes.ruler, view.width, view.height - this.sizes.ruler, () => {
      this.items(false);
      this.within(0, this.sizes.ruler, view.width, view.pinnedHeight, () => {
        this.fill(0, this.sizes.ruler, view.width, view.pinnedHeight, this.theme.paper);
        this.items(true);
        this.fill(0, this.sizes.ruler + view.pinnedHeight - 2, view.width, 2, this.theme.muted);
      });
      this.state.rowDrag?.draw(this);
    });
    drawRuler(this);
    drawFlags(this, this.state.flags.all);
  }

  /**
   * Draw the pinned rows or, if `isPinned` is false, all other items, with their overlays.
   * @param {boolean} isPinned
   */
  items(isPinned) {
    const { view } = this;
    drawGrid(this);
    view.items.filter((item) => Boolean(item.isPinned) === isPinned && view.isVisible(item)).forEach((item) => this.item(item));
    this.inPlot(() => {
      this.span();
      this.focus();
      drawJumps(this);
      drawArrows(this);
    });
  }

  /**
   * @param {number} left
   * @param {number} top
   * @param {number} width
   * @param {number} height
   * @param {string} colour
   */
  fill(left, top, width, height, colour) {
    this.pen.fillStyle = colour;
    this.pen.fillRect(left, top, width, height);
  }

  /**
   * @param {number} left
   * @param {number} top
   * @param {number} width
   * @param {number} height
   * @param {() => void} paint
   */
  within(left, top, width, height, paint) {
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(left, top, width, height);
    this.pen.clip();
    paint();
    this.pen.restore();
  }

  /** @param {() => void} paint */
  inPlot(paint) {
    this.within(this.sizes.labels, this.sizes.ruler, this.view.pixels, this.view.height - this.sizes.ruler, paint);
  }

  /** @param {Item} item */
  item(item) {
    if (item.kind === "row") {
      this.row(item);
    } else if (item.kind === "counter") {
      this.counter(item);
    } else {
      this[item.kind](item);
    }
  }

  /** Draw the selected span over all rows or over the selected rows. */
  span() {
    const { span } = this.state;
    if (!span) {
      return;
    }
    const [left, right] = [this.view.x(span.start), this.view.x(span.end)];
    if (!span.rows) {
      this.fill(left, this.sizes.ruler, right - left, this.view.height, this.theme.span);
      return;
    }
    for (const item of this.view.items) {
      if (item.kind === "row" && span.rows.get(item.rank.number)?.has(item.row.at)) {
        this.fill(left, this.view.y(item.top), right - left, item.height, this.theme.span);
      }
    }
  }

  /** Draw the finding that was clicked. */
  focus() {
    const { focus } = this.state;
    if (!focus) {
      return;
    }
    const items = this.view.items.filter((item) => item.rank.number === focus.rank && !item.isPinned);
    const [first, last] = [items[0], items[items.length - 1]];
    if (first) {
      const width = Math.max(this.view.x(focus.end) - this.view.x(focus.start), 2);
      this.fill(this.view.x(focus.start), this.view.y(first.top), width, last.top + last.height - first.top, this.theme.focus);
    }
  }

  /**
   * @param {string} first
   * @param {string} second
   * @param {number} top
   * @param {number} height
   */
  label(first, second, top, height) {
    const { pen, theme } = this;
    const room = Math.floor((this.sizes.labels - 18) / this.characterWidth);
    /** @param {string} text */
    const cut = (text) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
    pen.fillStyle = theme.ink;
    pen.fillText(cut(first), 10, this.view.y(top) + 9);
    if (second && height >= 2 * this.sizes.lane) {
      pen.fillStyle = theme.muted;
      pen.fillText(cut(second), 10, this.view.y(top) + 23);
    }
  }

  /** @param {Item} item */
  rank({ rank, top }) {
    const { pen, sizes, theme, view } = this;
    this.fill(0, view.y(top), view.width, sizes.head, theme.heading);
    pen.fillStyle = theme.ink;
    pen.font = `600 ${FONT}`;
    const name = `${rank.isFolded ? "▸" : "▾"} rank ${rank.number}`;
    const middle = view.y(top) + sizes.head / 2;
    pen.fillText(name, 8, middle);
    const clockStart = pen.measureText(name).width + 18;
    const clock = rank.clock.host ? clockText(rank.clock) : "";
    pen.font = FONT;
    pen.fillStyle = theme.muted;
    pen.fillText(clock, clockStart, middle);
    if (rank.reason) {
      const clockEnd = clockStart + pen.measureText(clock).width;
      pen.fillText(rank.reason, Math.max(this.sizes.labels + 8, clockEnd + 16), middle);
    }
  }

  /** @param {Item} item */
  path({ rank, top }) {
    this.label("critical path", "", top, this.sizes.band);
    this.inPlot(() => {
      for (const segment of rank.path?.along ?? []) {
        const text = segment.count === 1 ? segment.name || segment.kind : "";
        this.box(rank, segment, this.view.y(top), colours.path[segment.kind], text);
      }
    });
  }

  /** @param {Item} item */
  findings({ rank, top }) {
    const kinds = Object.keys(colours.findings);
    this.label(rank.findings ? `findings (${countText(rank.findings.length)})` : "findings …", "", top, this.sizes.band);
    this.inPlot(() => {
      for (const { kind, start, end } of rank.findings ?? []) {
        const left = this.view.x(start + rank.offset);
        const width = Math.max(this.view.x(end + rank.offset) - left, 3);
        this.fill(left, this.view.y(top) + 1 + 6 * kinds.indexOf(kind), width, 5, colours.findings[kind]);
      }
    });
  }

  /** @param {CounterItem} item */
  counter({ rank, counter, top }) {
    const { series } = counter;
    this.label(counter.label, `up to ${amountText(counter.highest, counter.unit)}`, top, this.sizes.counter);
    if (series && series.time.length) {
      this.inPlot(() => {
        const bottom = this.view.y(top) + this.sizes.counter - 4;
        const points = { time: series.time.map((time) => time + rank.offset), end: series.end + rank.offset, bottom };
        this.area({ ...points, values: series.highest, highest: counter.highest }, this.theme.highest);
        this.area({ ...points, values: series.mean, highest: counter.highest }, this.theme.mean);
      });
    }
  }

  /**
   * @param {{ time: number[], end: number, bottom: number, values: number[], highest: number }} series
   * @param {string} colour
   */
  area({ time, end, bottom, values, highest }, colour) {
    const { pen, view } = this;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.moveTo(view.x(time[0]), bottom);
    values.forEach((value, at) => {
      const level = bottom - (Math.max(value, 0) / (highest || 1)) * (this.sizes.counter - 8);
      pen.lineTo(view.x(time[at]), level);
      pen.lineTo(view.x(time[at + 1] ?? end), level);
    });
    pen.lineTo(view.x(end), bottom);
    pen.fill();
  }

  /** @param {RowItem} item */
  row(item) {
    const { rank, row, top, height } = item;
    const mark = row.lanes > 1 ? (row.isFolded ? "▸ " : "▾ ") : "";
    const hidden = row.hidden ? ` (${countText(row.hidden)} not drawn)` : "";
    const of = item.isPinned ? `rank ${rank.number} · ` : "";
    this.label(`${mark}${of}${shortLabel(rank, row)}${hidden}`, row.process, top, height);
    if (this.state.hovered === row) {
      drawButtons(this, item);
    }
    this.inPlot(() => {
      for (let depth = 0; depth < (row.isFolded ? 1 : row.lanes); depth += 1) {
        const [lane, y] = [`${row.at}/${depth}`, this.view.y(top) + depth * this.sizes.lane];
        const marks = this.state.shown.has("path") ? rank.path?.marks.get(lane) : undefined;
        rank.lanes.get(lane)?.forEach((slice) => this.slice(rank, slice, y));
        marks?.forEach((part) => this.mark(rank, part, y));
      }
    });
  }

  /**
   * @param {Rank} rank
   * @param {Slice} slice
   * @param {number} y
   */
  slice(rank, slice, y) {
    const { pattern, selected } = this.state;
    const isOther = pattern && !slice.name.isFound;
    const filled = slice.count > 1 ? 0.35 + 0.65 * Math.min(1, slice.busy / Math.max(slice.length, 1)) : 1;
    this.pen.globalAlpha = filled * (isOther ? 0.25 : 1);
    this.box(rank, slice, y, slice.name.colour, slice.count === 1 ? slice.name.text : "");
    this.pen.globalAlpha = 1;
    if (selected?.event === slice.event && selected.rank === rank.number) {
      this.frame(rank, slice, y, this.theme.ink, 2);
    }
  }

  /**
   * @param {Rank} rank
   * @param {Interval} interval
   * @param {number} y
   * @param {string} colour
   * @param {string} text
   */
  box(rank, { start, length }, y, colour, text) {
    const left = this.view.x(start + rank.offset);
    const right = this.view.x(start + length + rank.offset);
    if (right < this.sizes.labels - 1 || left > this.view.width) {
      return;
    }
    const width = Math.max(right - left, 1);
    this.fill(left, y + 1, width > 3 ? width - 0.5 : width, this.sizes.lane - 2, colour);
    if (text && width > 24) {
      this.pen.fillStyle = colours.inkOn(colour);
      this.text(text, left, width, y + this.sizes.lane / 2);
    }
  }

  /**
   * @param {Rank} rank
   * @param {Interval} interval
   * @param {number} y
   * @param {string} colour
   * @param {number} thickness
   */
  frame(rank, { start, length }, y, colour, thickness) {
    const [left, right] = [this.view.x(start + rank.offset), this.view.x(start + length + rank.offset)];
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = thickness;
    this.pen.strokeRect(left, y + 1, Math.max(right - left, 2), this.sizes.lane - 2);
  }

  /**
   * Mark the part of an event that belongs to the critical path.
   * @param {Rank} rank
   * @param {Interval} part
   * @param {number} y
   */
  mark(rank, part, y) {
    const [left, right] = [this.view.x(part.start + rank.offset), this.view.x(part.start + part.length + rank.offset)];
    if (right >= this.sizes.labels - 1 && left <= this.view.width) {
      this.fill(left, y + this.sizes.lane - 5, Math.max(right - left, 1), 4, this.theme.path);
      if (right - left > 6) {
        this.frame(rank, part, y, this.theme.path, 1);
      }
    }
  }

  /**
   * Draw the text of a box, cut to the visible part of the box.
   * @param {string} text
   * @param {number} left
   * @param {number} width
   * @param {number} y
   */
  text(text, left, width, y) {
    const from = Math.max(left, this.sizes.labels);
    const room = Math.floor((Math.min(left + width, this.view.width) - from - 6) / this.characterWidth);
    if (room >= 3) {
      this.pen.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, from + 3, y);
    }
  }

  /**
   * @param {number} rank
   * @param {number} row
   * @param {number} depth
   */
  middle(rank, row, depth) {
    const item = this.view.rowItem(rank, row);
    return item && this.view.y(item.top) + (item.row.isFolded ? 0 : depth) * this.sizes.lane + this.sizes.lane / 2;
  }
}
