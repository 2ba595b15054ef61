// Draws the buttons on the label of a row, and lets the visitor drag a row to another position.

import { SIZES } from "../view.js";
import { shortLabel } from "./row_state.js";

/** @typedef {import("../../types.js").Item} Item */
/** @typedef {import("../../types.js").Pointer} Pointer */
/** @typedef {import("../../types.js").RowItem} RowItem */
/** @typedef {import("../drawing/painter.js").Painter} Painter */
/** @typedef {import("../view.js").View} View */
/** @typedef {import("./row_state.js").RowState} RowState */

const BUTTON_PX = 22;
const [PIN_AT, HIDE_AT] = [2 * BUTTON_PX + 2, BUTTON_PX + 2]; // from the right end of the label

/**
 * Return which button of a row's label is at a pixel; null if there is none.
 * @param {View} view
 * @param {Item | undefined} item
 * @param {number} x
 * @param {number} y
 * @returns {"pin" | "hide" | null}
 */
export const buttonAt = (view, item, x, y) => {
  const fromRight = SIZES.labels - x;
  if (item?.kind !== "row" || y > view.y(item.top) + SIZES.lane + SIZES.gap || fromRight <= 2) {
    return null;
  }
  return fromRight <= HIDE_AT ? "hide" : fromRight <= PIN_AT ? "pin" : null;
};

/**
 * Return the tooltip of a button.
 * @param {RowItem} item
 * @param {"pin" | "hide"} name
 */
export const buttonText = (item, name) => {
  const label = shortLabel(item.rank, item.row);
  return name === "hide" ? `hide ${label}` : `${item.isPinned ? "unpin" : "pin"} ${label}`;
};

/**
 * Draw the buttons of the row under the pointer.
 * @param {Painter} painter
 * @param {RowItem} item
 */
export const drawButtons = ({ pen, theme, view }, item) => {
  const middle = view.y(item.top) + SIZES.lane / 2 + 1;
  const right = SIZES.labels;
  pen.fillStyle = theme.paper;
  pen.fillRect(right - PIN_AT - 2, middle - 9, PIN_AT + 1, 18);
  pen.fillStyle = theme.ink;
  pen.textAlign = "center";
  pen.fillText(item.isPinned ? "▼" : "▲", right - PIN_AT + BUTTON_PX / 2, middle);
  pen.fillText("✕", right - HIDE_AT + BUTTON_PX / 2, middle);
  pen.textAlign = "start";
};

/** A drag of a row's label to another position. */
export class RowDrag {
  /**
   * @param {View} view
   * @param {RowState} rows
   * @param {RowItem} item
   */
  constructor(view, rows, item) {
    this.view = view;
    this.rows = rows;
    this.item = item;
    /** @type {RowItem | null} */
    this.before = null;
    this.line = 0;
    this.isPossible = false;
  }

  /**
   * Find where a drop would insert the dragged row: above another row of its rank, above a pinned row, or at the end.
   * @param {Pointer} pointer
   */
  to({ y }) {
    const target = this.view.itemAt(Math.max(y, SIZES.ruler));
    this.isPossible = target?.kind === "row" && (Boolean(target.isPinned) || target.rank === this.item.rank);
    if (target?.kind !== "row" || !this.isPossible) {
      return;
    }
    const isUpper = y < this.view.y(target.top) + target.height / 2;
    this.before = isUpper ? target : this.after(target);
    this.line = this.view.y(target.top) + (isUpper ? 0 : target.height);
  }

  /**
   * Return the next row of the same rank or, for a pinned row, the next pinned row; null if there is none.
   * @param {RowItem} target
   */
  after(target) {
    const next = this.view.items[this.view.items.indexOf(target) + 1];
    const isBeside = next?.kind === "row" && (target.isPinned ? next.isPinned : next.rank === target.rank);
    return isBeside ? /** @type {RowItem} */ (next) : null;
  }

  /** Move the row; return whether it moved. */
  drop() {
    const { before, item, rows } = this;
    if (this.isPossible && before?.row !== item.row) {
      rows.move(item.rank, item.row, before);
    }
    return this.isPossible;
  }

  /** @param {Painter} painter */
  draw(painter) {
    if (this.isPossible) {
      painter.fill(0, this.line - 1, painter.view.width, 2, painter.theme.path);
    }
  }
}
