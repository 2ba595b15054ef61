// Finds the item under the pointer, and shows a tooltip next to it.

import * as colours from "./drawing/colours.js";
import { element } from "./elements.js";
import { amountText, countedText, countText, durationText } from "../units.js";
import { buttonAt, buttonText } from "./rows/row_marks.js";
import { SIZES } from "./view.js";

/** @typedef {import("../types.js").Finding} Finding */
/** @typedef {import("../types.js").Interval} Interval */
/** @typedef {import("../types.js").Item} Item */
/** @typedef {import("../types.js").Pointer} Pointer */
/** @typedef {import("../types.js").Rank} Rank */
/** @typedef {import("../types.js").Segment} Segment */
/** @typedef {import("../types.js").Slice} Slice */
/** @typedef {import("./view.js").View} View */

const REACH_PX = 3;
const FINDING_PX = 6;

/** @param {Slice} slice */
const linesOfSlice = ({ busy, count, length, name }) =>
  count > 1
    ? [`${countText(count)} events, busy for ${durationText(busy)} of ${durationText(length)}`, `longest: ${name.text}`]
    : [name.text, durationText(length)];

/** @param {Segment} segment */
const linesOfSegment = ({ count, kind, length, name }) => {
  const merged = count > 1 ? [`${countText(count)} segments, longest:`] : [];
  return [...merged, name || "outside all events", `${kind}, ${durationText(length)}`];
};

export class Pointing {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.tip = element("div", "holotrace-timeline-tip");
    this.tip.hidden = true;
  }

  /**
   * Return the interval nearest to a pixel, at most `REACH_PX` away.
   * @template {Interval} T
   * @param {T[]} intervals
   * @param {Rank} rank
   * @param {number} x
   * @returns {T | null}
   */
  nearest(intervals, rank, x) {
    const time = this.view.timeAt(x) - rank.offset;
    let best = null;
    let distance = (REACH_PX * this.view.length) / this.view.pixels;
    for (const interval of x < SIZES.labels ? [] : intervals) {
      const away = Math.max(interval.start - time, time - interval.start - interval.length, 0);
      if (away < distance) {
        best = interval;
        distance = away;
      }
    }
    return best;
  }

  /**
   * @param {Item | undefined} item
   * @param {number} x
   * @param {number} y
   */
  sliceAt(item, x, y) {
    if (item?.kind !== "row") {
      return null;
    }
    const depth = item.row.isFolded ? 0 : Math.floor((y - this.view.y(item.top)) / SIZES.lane);
    return this.nearest(item.rank.lanes.get(`${item.row.at}/${depth}`) ?? [], item.rank, x);
  }

  /**
   * @param {Item | undefined} item
   * @param {number} x
   */
  segmentAt(item, x) {
    return item?.kind === "path" ? this.nearest(item.rank.path?.along ?? [], item.rank, x) : null;
  }

  /**
   * @param {Item | undefined} item
   * @param {number} x
   * @param {number} y
   */
  findingAt(item, x, y) {
    if (item?.kind !== "findings") {
      return null;
    }
    const kind = Object.keys(colours.findings)[Math.floor((y - this.view.y(item.top) - 1) / FINDING_PX)];
    const findings = (item.rank.findings ?? []).filter((finding) => finding.kind === kind);
    const intervals = findings.map((finding) => ({ ...finding, length: finding.end - finding.start }));
    return this.nearest(intervals, item.rank, x);
  }

  /** @param {Pointer | null} pointer */
  show(pointer) {
    const lines = pointer && this.lines(pointer.x, pointer.y);
    this.tip.hidden = !lines;
    if (lines) {
      const { x, y } = pointer;
      const { height, width } = this.view;
      this.tip.textContent = lines.join("\n");
      const isRightOf = x + 14 + this.tip.offsetWidth <= width;
      this.tip.style.left = `${isRightOf ? x + 14 : Math.max(0, x - this.tip.offsetWidth - 10)}px`;
      this.tip.style.top = `${Math.max(0, Math.min(y + 14, height - this.tip.offsetHeight - 4))}px`;
    }
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  lines(x, y) {
    const item = this.view.itemAt(y);
    const slice = this.sliceAt(item, x, y);
    const segment = this.segmentAt(item, x);
    const finding = this.findingAt(item, x, y);
    if (slice) {
      return linesOfSlice(slice);
    }
    if (segment) {
      return linesOfSegment(segment);
    }
    return finding ? [finding.text] : item ? this.linesOfItem(item, x, y) : null;
  }

  /**
   * @param {Item} item
   * @param {number} x
   * @param {number} y
   */
  linesOfItem(item, x, y) {
    const isLabel = x < SIZES.labels;
    if (item.kind === "row" && isLabel) {
      const name = buttonAt(this.view, item, x, y);
      if (name) {
        return [buttonText(item, name)];
      }
      return [`${item.row.process}, ${item.row.label}`, countedText(item.row.events, "event")];
    }
    if (item.kind === "counter" && !isLabel && item.counter.series) {
      const { time, mean } = item.counter.series;
      const at = time.filter((start) => start <= this.view.timeAt(x) - item.rank.offset).length - 1;
      return at >= 0 ? [item.counter.label, amountText(mean[at], item.counter.unit)] : null;
    }
    return null;
  }
}
