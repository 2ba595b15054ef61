// Handles the mouse and the keyboard in the same way as Perfetto and chrome://tracing: W and S zoom, A and D pan; the
// wheel zooms with Ctrl or Alt and pans with Shift.

import { SIZES } from "./view.js";
import { clamp } from "../units.js";

/** @typedef {import("../types.js").Pointer} Pointer */
/** @typedef {import("../types.js").RowItem} RowItem */
/** @typedef {import("../types.js").Span} Span */
/** @typedef {import("./view.js").View} View */
/**
 * The point where a drag began, and the visible range at that time.
 * @typedef {{ x: number, y: number, start: number, end: number, scroll: number, isSpan: boolean, isClick: boolean,
 *   row: RowItem | null }} Drag
 */
/**
 * @typedef {object} Actions
 * @property {() => void} moved
 * @property {(pointer: Pointer | null) => void} hover
 * @property {(x: number, y: number) => void} click
 * @property {(item: RowItem, pointer: Pointer) => void} dragRow
 * @property {() => void} dropRow
 * @property {(span: Span) => void} span
 * @property {() => void} spanDone
 * @property {() => void} fitSelected
 * @property {() => void} fitAll
 * @property {() => void} markSelected
 * @property {() => void} toSearch
 * @property {(x: number | null) => void} flag sets a flag at a pixel; null if the pointer is not on the rows
 * @property {(of: "row" | "name", by: 1 | -1) => unknown} step
 * @property {(by: 1 | -1) => unknown} stepLane
 * @property {() => boolean} unselect returns whether anything was selected
 */

const GLIDES = new Set(["w", "a", "s", "d"]);
/** @type {Record<string, string>} */
const ARROWS = { arrowleft: "a", arrowright: "d" };
const ZOOM_A_SECOND = 3;
const PAN_A_SECOND = 0.9;
const CLICK_PX = 4;
const ROWS_A_KEY = 3;

export class Input {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {View} view
   * @param {Actions} actions
   */
  constructor(canvas, view, actions) {
    this.canvas = canvas;
    this.view = view;
    this.actions = actions;
    /** @type {Set<string>} */
    this.held = new Set();
    /** @type {Pointer | null} */
    this.pointer = null;
    /** @type {Drag | null} */
    this.drag = null;
    this.last = 0;
    this.listen();
  }

  listen() {
    const { canvas, view } = this;
    /**
     * @template {Event} E
     * @param {(event: E) => void} handle
     */
    const whenOpen = (handle) => (/** @type {E} */ event) => view.isOpen && handle.call(this, event);
    canvas.addEventListener("pointerdown", whenOpen(this.pointerdown));
    canvas.addEventListener("pointermove", whenOpen(this.pointermove));
    canvas.addEventListener("pointerup", whenOpen(this.pointerup));
    canvas.addEventListener("pointerleave", whenOpen(this.pointerleave));
    canvas.addEventListener("dblclick", whenOpen(this.dblclick));
    canvas.addEventListener("wheel", whenOpen(this.wheel), { passive: false });
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { offsetX: x, deltaX, deltaY } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) {
      this.view.zoom(Math.exp(clamp(deltaY, -200, 200) * 0.003), x);
    } else if (event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
      this.view.pan((deltaX || deltaY) / this.view.pixels);
    } else if (this.view.canScroll) {
      this.view.scroll += deltaY;
    } else {
      return; // let the page scroll
    }
    event.preventDefault();
    this.actions.moved();
  }

  /** @param {PointerEvent} event */
  pointerdown(event) {
    if (event.button !== 0) {
      return;
    }
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const { offsetX: x, offsetY: y } = event;
    const isSpan = (event.shiftKey || y < SIZES.ruler) && x > SIZES.labels;
    const { start, end, scroll } = this.view;
    const item = x < SIZES.labels ? this.view.itemAt(y) : undefined;
    this.drag = { x, y, start, end, scroll, isSpan, isClick: true, row: item?.kind === "row" ? item : null };
    this.actions.hover(null);
  }

  /** @param {PointerEvent} event */
  pointermove(event) {
    const { offsetX: x, offsetY: y } = event;
    this.pointer = { x, y };
    if (!this.drag) {
      this.canvas.style.cursor = y < SIZES.ruler ? "col-resize" : "default";
      this.actions.hover(this.pointer);
      return;
    }
    this.drag.isClick = this.drag.isClick && Math.hypot(x - this.drag.x, y - this.drag.y) < CLICK_PX;
    if (this.drag.isClick) {
      return;
    }
    if (this.drag.row) {
      this.actions.dragRow(this.drag.row, this.pointer);
      return;
    }
    if (this.drag.isSpan) {
      this.actions.span(this.spanTo(this.drag, this.pointer));
      return;
    }
    const by = ((this.drag.x - x) / this.view.pixels) * (this.drag.end - this.drag.start);
    this.view.scroll = this.drag.scroll + this.drag.y - y;
    this.view.move(this.drag.start + by, this.drag.end + by);
    this.actions.moved();
  }

  /**
   * Return the span that a drag selects: on all rows if the drag began on the ruler, else on the rows that it touches.
   * @param {Drag} drag
   * @param {Pointer} pointer
   * @returns {Span}
   */
  spanTo(drag, { x, y }) {
    const { labels, ruler } = SIZES;
    const [one, other] = [drag.x, x].map((pixel) => this.view.timeAt(clamp(pixel, labels, this.view.width)));
    const rows = drag.y < ruler ? null : this.view.rowsBetween(drag.y, y);
    return { start: Math.floor(Math.min(one, other)), end: Math.ceil(Math.max(one, other)), rows };
  }

  /** @param {PointerEvent} event */
  pointerup(event) {
    const { drag } = this;
    this.drag = null;
    if (drag?.isClick) {
      this.actions.click(event.offsetX, event.offsetY);
    } else if (drag?.row) {
      this.actions.dropRow();
    } else if (drag?.isSpan) {
      this.actions.spanDone();
    }
  }

  pointerleave() {
    this.pointer = null;
    this.actions.hover(null);
  }

  dblclick() {
    this.actions.fitSelected();
  }

  /**
   * Handle a key; return whether the timeline uses this key.
   * @param {KeyboardEvent} event
   */
  key(event) {
    const key = event.key.toLowerCase();
    const isHere = event.target === this.canvas;
    const glide = GLIDES.has(key) ? key : isHere ? ARROWS[key] : undefined;
    const actions = event.shiftKey ? this.shifted : this.plain;
    if (glide) {
      this.hold(glide);
    } else if (isHere && (key === "arrowup" || key === "arrowdown")) {
      this.view.scroll += (key === "arrowup" ? -1 : 1) * ROWS_A_KEY * SIZES.lane;
      this.actions.moved();
    } else {
      return key in actions && actions[key]() !== false;
    }
    return true;
  }

  /** @returns {Record<string, () => unknown>} */
  get plain() {
    const { fitAll, fitSelected, markSelected, step, stepLane, toSearch, unselect } = this.actions;
    return {
      f: fitSelected,
      0: fitAll,
      m: markSelected,
      "/": toSearch,
      ",": () => step("row", -1),
      ".": () => step("row", 1),
      j: () => stepLane(1),
      k: () => stepLane(-1),
      n: () => step("name", 1),
      escape: unselect,
    };
  }

  /** @returns {Record<string, () => unknown>} */
  get shifted() {
    const { flag, step, toSearch } = this.actions;
    return { f: () => flag(this.pointer?.x ?? null), n: () => step("name", -1), "/": toSearch };
  }

  /** @param {KeyboardEvent} event */
  release(event) {
    const key = event.key.toLowerCase();
    this.held.delete(ARROWS[key] || key);
  }

  /**
   * Move the view a little in each frame while a key is held.
   * @param {string} key
   */
  hold(key) {
    const wasIdle = this.held.size === 0;
    this.held.add(key);
    if (wasIdle && this.view.isOpen) {
      this.last = performance.now() - 16;
      window.requestAnimationFrame(() => this.glide());
    }
  }

  glide() {
    if (!this.held.size) {
      return;
    }
    const now = performance.now();
    const passed = Math.min(now - this.last, 60) / 1000;
    this.last = now;
    const { labels } = SIZES;
    const x = this.pointer && this.pointer.x > labels ? this.pointer.x : labels + this.view.pixels / 2;
    /**
     * @param {string} one
     * @param {string} other
     */
    const speed = (one, other) => (this.held.has(one) ? 1 : 0) - (this.held.has(other) ? 1 : 0);
    this.view.zoom(Math.exp(-speed("w", "s") * ZOOM_A_SECOND * passed), x);
    this.view.pan(speed("d", "a") * PAN_A_SECOND * passed);
    this.actions.moved();
    window.requestAnimationFrame(() => this.glide());
  }
}
