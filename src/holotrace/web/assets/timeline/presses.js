// Defines what the pointer does on the canvas: it hovers over rows, drags rows, and clicks.

import { RowDrag, buttonAt } from "./rows/row_marks.js";
import { SIZES } from "./view.js";

/** @typedef {import("../types.js").Pointer} Pointer */
/** @typedef {import("../types.js").RowItem} RowItem */
/** @typedef {import("./timeline.js").Timeline} Timeline */

export class Presses {
  /** @param {Timeline} timeline */
  constructor(timeline) {
    this.timeline = timeline;
  }

  /** @returns {import("./input.js").Actions} */
  actions() {
    const { flags, movement, selection, stepping } = this.timeline;
    return {
      moved: () => {
        this.timeline.top = null;
        this.timeline.changed();
      },
      hover: (pointer) => this.hover(pointer),
      dragRow: (item, pointer) => this.dragRow(item, pointer),
      dropRow: () => this.dropRow(),
      click: (x, y) => this.click(x, y),
      span: (span) => selection.setSpan(span),
      spanDone: () => selection.describeSpan(),
      fitSelected: () => movement.fitSelected(),
      fitAll: () => movement.fitAll(),
      markSelected: () => selection.markSelected(),
      toSearch: () => this.timeline.toolbar.searchBox.focus(),
      flag: (x) => flags.setAt(x),
      step: (of, by) => stepping.step(of, by),
      stepLane: (by) => stepping.stepLane(by),
      unselect: () => selection.unselect(),
    };
  }

  /** @param {Pointer | null} pointer */
  hover(pointer) {
    const { input, pointing, view } = this.timeline;
    pointing.show(pointer);
    if (input.drag) {
      return; // keep the buttons of a row while the pointer presses one of them
    }
    const item = pointer && pointer.x < SIZES.labels ? view.itemAt(pointer.y) : undefined;
    const hovered = item?.kind === "row" ? item.row : null;
    if (hovered !== this.timeline.hovered) {
      this.timeline.hovered = hovered;
      this.timeline.draw();
    }
  }

  /**
   * @param {RowItem} item
   * @param {Pointer} pointer
   */
  dragRow(item, pointer) {
    const { rows, view } = this.timeline;
    this.timeline.rowDrag ??= new RowDrag(view, rows, item);
    this.timeline.rowDrag.to(pointer);
    this.timeline.draw();
  }

  dropRow() {
    this.timeline.rowDrag?.drop();
    this.timeline.rowDrag = null;
    this.timeline.rowsChanged();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  click(x, y) {
    const { flags, movement, pointing, selection, view } = this.timeline;
    this.timeline.top = null;
    const item = view.itemAt(y);
    const finding = pointing.findingAt(item, x, y);
    const segment = pointing.segmentAt(item, x);
    const slice = pointing.sliceAt(item, x, y);
    if (y < SIZES.ruler) {
      flags.press(x);
    } else if (item && finding) {
      movement.goToFinding(item.rank, finding);
    } else if (item && segment && segment.event >= 0) {
      selection.select(item.rank.number, segment.event);
    } else if (item?.kind === "rank") {
      item.rank.isFolded = !item.rank.isFolded;
      this.timeline.arranged(item);
    } else if (item?.kind === "row" && x < SIZES.labels) {
      this.clickLabel(item, x, y);
    } else if (item && slice) {
      selection.select(item.rank.number, slice.event);
    } else {
      selection.select(null);
    }
  }

  /**
   * Handle a click on a row's label: press the button at this pixel or, if there is none, fold or unfold the row.
   * @param {RowItem} item
   * @param {number} x
   * @param {number} y
   */
  clickLabel(item, x, y) {
    const { hovered, rows, view } = this.timeline;
    const name = item.row === hovered ? buttonAt(view, item, x, y) : null;
    if (name) {
      rows[name === "pin" ? "togglePinned" : "toggleHidden"](item.rank, item.row);
      this.timeline.hovered = null;
      this.timeline.rowsChanged();
      return;
    }
    item.row.isFolded = item.row.lanes > 1 && !item.row.isFolded;
    this.timeline.arranged(item);
  }
}
