// The map above the rows: the busy times of each rank over the whole recording, and the visible range as a brush.

import { toAxis } from "../data/clocks.js";
import { ask } from "../data/server.js";
import * as colours from "../drawing/colours.js";
import { element } from "../elements.js";
import { SIZES } from "../view.js";
import { clamp, durationText } from "../../units.js";

/** @typedef {import("../../types.js").Rank} Rank */
/** @typedef {import("../timeline.js").Timeline} Timeline */
/** @typedef {"start" | "end" | "both" | "new"} Grip */
/** @typedef {{ start: number, end: number }} Times */
/** @typedef {{ of: "device" | "host", percent: number[] }} Busy */

const HEIGHT = 36;
const EDGE_PX = 8;
const LEAST_PX = 6;
const CLICK_PX = 3;
const [PAN, ZOOM] = [0.1, 1.25];

/**
 * Return what a drag that begins at pixel `x` moves: the start of the brush, its end, or both. A drag that begins
 * outside the brush draws a new one.
 * @param {number} x
 * @param {number} left
 * @param {number} right
 * @returns {Grip}
 */
export const gripAt = (x, left, right) => {
  const edge = Math.min(EDGE_PX, (right - left) / 4);
  if (x < left - edge || x > right + edge) {
    return "new";
  }
  return x <= left + edge ? "start" : x >= right - edge ? "end" : "both";
};

/**
 * Return the visible range after a drag from one time to another.
 * @param {Grip} grip
 * @param {Times} before
 * @param {number} from
 * @param {number} to
 * @returns {Times}
 */
export const dragged = (grip, { start, end }, from, to) => {
  const by = to - from;
  const edges = { start: [start + by, end], end: [start, end + by], both: [start + by, end + by], new: [from, to] }[grip];
  return { start: Math.min(...edges), end: Math.max(...edges) };
};

/**
 * Return the visible range after a key press; undefined if the key does nothing.
 * @param {string} key
 * @param {Times} times
 * @param {Times} whole
 * @returns {Times | undefined}
 */
export const afterKey = (key, { start, end }, whole) => {
  const [length, middle] = [end - start, (start + end) / 2];
  const at = (/** @type {number} */ from) => ({ start: from, end: from + length });
  const around = (/** @type {number} */ half) => ({ start: middle - half, end: middle + half });
  /** @type {Record<string, Times>} */
  const ranges = {
    ArrowLeft: at(start - PAN * length),
    ArrowRight: at(start + PAN * length),
    ArrowUp: around(length / 2 / ZOOM),
    ArrowDown: around((length / 2) * ZOOM),
    Home: at(whole.start),
    End: at(whole.end - length),
  };
  return Object.hasOwn(ranges, key) ? ranges[key] : undefined;
};

export class Minimap {
  /**
   * @param {Timeline} state
   * @param {{ move: (start: number, end: number) => void, say: (text: string) => void }} actions
   */
  constructor(state, { move, say }) {
    this.state = state;
    this.move = move;
    this.say = say;
    /** @type {Map<number, Busy>} */
    this.busy = new Map();
    this.width = 0;
    /** @type {{ grip: Grip, x: number, times: Times, isClick: boolean } | null} */
    this.drag = null;
    this.canvas = element("canvas");
    this.brush = element("div", "holotrace-timeline-brush");
    this.root = state.map;
    this.loading = Promise.resolve();
    this.note = element("span", "holotrace-timeline-map-note");
    this.canvas.setAttribute("aria-hidden", "true");
    this.brush.tabIndex = 0;
    this.brush.dataset.keys = "";
    this.brush.setAttribute("role", "slider");
    this.brush.setAttribute("aria-label", "visible part of the recording");
    this.brush.title = "drag to move, drag an edge to resize; ← → pan, ↑ ↓ zoom";
    this.root.append(this.note, this.canvas, this.brush);
    this.listen();
  }

  listen() {
    this.root.addEventListener("pointerdown", (event) => this.grip(event));
    this.root.addEventListener("pointermove", (event) => this.pull(event));
    this.root.addEventListener("pointerup", (event) => this.release(event));
    this.brush.addEventListener("keydown", (event) => {
      const times = afterKey(event.key, this.state.view, this.state.view.whole);
      if (times) {
        event.preventDefault();
        this.move(times.start, times.end);
      }
    });
  }

  /** Request the busy times of the ranks, one rank after the other. */
  load() {
    this.loading = this.loading.then(() => this.loadMissing());
  }

  async loadMissing() {
    const { ranks, run } = this.state;
    try {
      for (const { number } of ranks.filter((rank) => !this.busy.has(rank.number))) {
        const busy = await ask("busy", { run, rank: number });
        if (this.state.isClosed) {
          return;
        }
        this.busy.set(number, busy);
        this.draw();
      }
    } catch (error) {
      this.say(/** @type {Error} */ (error).message);
    }
  }

  get pixels() {
    return Math.max(this.width - SIZES.labels, 1);
  }

  /** @param {number} time */
  x(time) {
    const { end, start } = this.state.view.whole;
    return SIZES.labels + ((time - start) / Math.max(end - start, 1)) * this.pixels;
  }

  /** @param {number} x */
  timeAt(x) {
    const { end, start } = this.state.view.whole;
    return start + ((x - SIZES.labels) / this.pixels) * (end - start);
  }

  /** The left and right edge of the brush, at least `LEAST_PX` apart. */
  get edges() {
    const { end, start } = this.state.view;
    const [left, right] = [start, end].map((time) => clamp(this.x(time), SIZES.labels, SIZES.labels + this.pixels));
    const missing = Math.max(LEAST_PX - (right - left), 0) / 2;
    return [left - missing, right + missing];
  }

  /** @param {PointerEvent} event */
  at({ clientX }) {
    return clientX - this.root.getBoundingClientRect().left;
  }

  /** @param {PointerEvent} event */
  grip(event) {
    const x = this.at(event);
    if (event.button !== 0 || !this.state.view.isOpen || x < SIZES.labels) {
      return;
    }
    event.preventDefault();
    this.brush.focus({ preventScroll: true });
    this.root.setPointerCapture(event.pointerId);
    const [left, right] = this.edges;
    const { end, start } = this.state.view;
    this.drag = { grip: gripAt(x, left, right), x, times: { start, end }, isClick: true };
  }

  /** @param {PointerEvent} event */
  pull(event) {
    const x = this.at(event);
    if (!this.drag) {
      const grip = gripAt(x, this.edges[0], this.edges[1]);
      this.root.style.cursor = { start: "ew-resize", end: "ew-resize", both: "grab", new: "crosshair" }[grip];
      return;
    }
    this.drag.isClick = this.drag.isClick && Math.abs(x - this.drag.x) < CLICK_PX;
    if (!this.drag.isClick) {
      const { end, start } = dragged(this.drag.grip, this.drag.times, this.timeAt(this.drag.x), this.timeAt(x));
      this.move(start, end);
    }
  }

  /**
   * Finish a drag; a click outside the brush moves the brush to the clicked time.
   * @param {PointerEvent} event
   */
  release(event) {
    const { drag } = this;
    this.drag = null;
    if (drag?.isClick && drag.grip === "new") {
      const half = (drag.times.end - drag.times.start) / 2;
      const time = this.timeAt(this.at(event));
      this.move(time - half, time + half);
    }
  }

  /** Place the brush over the visible range. */
  follow() {
    const { end, start, whole } = this.state.view;
    const length = Math.max(whole.end - whole.start, 1);
    const [left, right] = this.edges;
    this.brush.style.left = `${left}px`;
    this.brush.style.width = `${right - left}px`;
    const percent = clamp(Math.round((100 * ((start + end) / 2 - whole.start)) / length), 0, 100);
    this.brush.setAttribute("aria-valuenow", String(percent));
    const [from, to] = [start, end].map((time) => durationText(Math.max(time - whole.start, 0)));
    this.brush.setAttribute("aria-valuetext", `${from} to ${to} of ${durationText(length)}`);
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.root.clientWidth;
    this.width = width; // stored, because reading it after each movement would make the browser lay out the page
    const pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    [this.canvas.width, this.canvas.height] = [width, HEIGHT].map((length) => Math.round(length * ratio));
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const theme = colours.theme();
    const known = this.state.ranks.filter(({ number }) => this.busy.has(number));
    const height = HEIGHT / Math.max(known.length, 1);
    pen.fillStyle = theme.mean;
    known.forEach((rank, at) => this.strip(pen, rank, at * height, height > 3 ? height - 1 : height));
    pen.globalAlpha = 1;
    pen.fillStyle = theme.flag;
    this.state.flags.all.forEach(({ time }) => pen.fillRect(this.x(time) - 1, 0, 2, HEIGHT));
    this.note.style.width = `${SIZES.labels}px`;
    const ofs = new Set(known.map(({ number }) => this.busy.get(number)?.of));
    this.note.textContent = known.length ? (ofs.has("device") ? "device busy" : "operators run") : "";
    this.follow();
  }

  /**
   * Draw the busy times of a rank as a strip, which is darker where the rank is busier.
   * @param {CanvasRenderingContext2D} pen
   * @param {Rank} rank
   * @param {number} top
   * @param {number} height
   */
  strip(pen, { clock, length, number }, top, height) {
    const percent = this.busy.get(number)?.percent ?? [];
    const [left, right] = [0, length].map((time) => this.x(toAxis(clock, time)));
    const step = (right - left) / percent.length;
    percent.forEach((share, at) => {
      if (share) {
        pen.globalAlpha = 0.15 + (0.85 * share) / 100;
        pen.fillRect(left + at * step, top, Math.max(step, 0.5), height);
      }
    });
  }
}
