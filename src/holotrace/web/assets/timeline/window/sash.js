// The bar between canvas and panel; dragging it, or pressing arrow keys on it, changes the height of the panel.

import { store, stored } from "../../shell/storage.js";
import { element } from "../elements.js";
import { clamp } from "../../units.js";

const KEY = "holotrace-timeline-panel";
const [LEAST, USUAL, MOST] = [10, 32, 80];
const STEP = 4;

/**
 * Return the panel's height after a key press, in percent of the timeline's height; undefined if the key does nothing.
 * @param {string} key
 * @param {number} height
 */
export const heightAfter = (key, height) => {
  /** @type {Record<string, number>} */
  const heights = { ArrowUp: height + STEP, ArrowDown: height - STEP, Home: LEAST, End: MOST, Enter: USUAL };
  return Object.hasOwn(heights, key) ? clamp(heights[key], LEAST, MOST) : undefined;
};

/**
 * Return the stored height, or the default height if nothing valid is stored.
 * @param {string | null} text
 */
export const heightFrom = (text) => clamp(Number(text) || USUAL, LEAST, MOST);

export class Sash {
  /**
   * @param {HTMLElement} around contains canvas and panel; its style property `--panel` is the height of the panel
   * @param {string} panel id of the panel
   */
  constructor(around, panel) {
    this.around = around;
    this.height = heightFrom(stored(KEY));
    this.bar = element("div", "holotrace-timeline-sash");
    this.bar.tabIndex = 0;
    this.bar.dataset.keys = "";
    const attributes = {
      role: "separator",
      "aria-orientation": "horizontal",
      "aria-label": "height of the details",
      "aria-controls": panel,
      "aria-valuemin": String(LEAST),
      "aria-valuemax": String(MOST),
    };
    Object.entries(attributes).forEach(([name, value]) => this.bar.setAttribute(name, value));
    this.bar.title = "drag, or press ↑ and ↓, to resize the details; press Enter or double-click to reset";
    this.bar.addEventListener("pointerdown", (event) => event.button === 0 && this.bar.setPointerCapture(event.pointerId));
    this.bar.addEventListener("pointermove", (event) => this.drag(event));
    this.bar.addEventListener("dblclick", () => this.set(USUAL));
    this.bar.addEventListener("keydown", (event) => this.press(event));
    this.set(this.height);
  }

  /** @param {number} height */
  set(height) {
    this.height = clamp(height, LEAST, MOST);
    this.around.style.setProperty("--panel", `${this.height}%`);
    this.bar.setAttribute("aria-valuenow", String(Math.round(this.height)));
    store(KEY, this.height.toFixed(1));
  }

  /** @param {PointerEvent} event */
  drag({ clientY, pointerId }) {
    if (this.bar.hasPointerCapture(pointerId)) {
      const { bottom, height } = this.around.getBoundingClientRect();
      this.set(((bottom - clientY) / height) * 100);
    }
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const height = heightAfter(event.key, this.height);
    if (height !== undefined) {
      event.preventDefault();
      this.set(height);
    }
  }
}
