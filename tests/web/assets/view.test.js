// The visible time range, and the layout.

import assert from "node:assert/strict";
import { test } from "node:test";

import { recorded } from "../../../src/holotrace/web/assets/timeline/data/clocks.js";
import { RowState } from "../../../src/holotrace/web/assets/timeline/rows/row_state.js";
import { SIZES, View } from "../../../src/holotrace/web/assets/timeline/view.js";

/** @typedef {import("../../../src/holotrace/web/assets/types.js").Rank} Rank */
/** @typedef {import("../../../src/holotrace/web/assets/types.js").Row} Row */

/**
 * @param {number} at
 * @param {number} lanes
 * @returns {Row}
 */
const row = (at, lanes) => ({ at, lanes, label: `stream ${at}`, process: "GPU 0", device: 0, events: 1, hidden: 0 });

/** @returns {Rank} */
const rank = () => ({
  number: 3,
  origin: 0n,
  clock: recorded(0n, 0n),
  offset: 0,
  length: 1_000,
  steps: [],
  rows: [row(0, 2), row(1, 1)],
  lanes: new Map(),
  counters: [],
  path: null,
});

const openView = () => {
  const view = new View();
  Object.assign(view, { start: 0, end: 1_000, whole: { start: 0, end: 1_000 }, isOpen: true });
  Object.assign(view, { width: SIZES.labels + 500, height: 300 });
  return view;
};

test("a pixel converts to a time, and the time back to the pixel", () => {
  const view = openView();
  assert.equal(view.x(500), SIZES.labels + 250);
  assert.equal(view.timeAt(view.x(123)), 123);
});

test("zooming keeps the time under the pointer", () => {
  const view = openView();
  const x = view.x(250);
  view.zoom(0.5, x);
  assert.equal(view.timeAt(x), 250);
  assert.equal(view.length, 500);
});

test("the view keeps a minimum length and stays within the recording", () => {
  const view = openView();
  view.move(10, 10);
  assert.equal(view.length, 20);
  view.move(-1e9, 1e9);
  assert.equal(view.length, 1_220);
  view.move(5_000, 5_100);
  assert.ok(view.start <= 1_000);
});

test("rows follow each other, and a folded row takes one lane", () => {
  const view = openView();
  const only = rank();
  view.arrange([only], new Set(), new RowState());
  assert.deepEqual(view.items.map(({ kind, top, height }) => [kind, top, height]), [
    ["rank", 0, SIZES.head],
    ["row", SIZES.head, 2 * SIZES.lane + SIZES.gap],
    ["row", SIZES.head + 2 * SIZES.lane + SIZES.gap, SIZES.lane + SIZES.gap],
  ]);
  only.rows[0].isFolded = true;
  view.arrange([only], new Set(["path"]), new RowState());
  assert.deepEqual(view.items.map(({ kind, height }) => [kind, height]), [
    ["rank", SIZES.head],
    ["path", SIZES.band + SIZES.gap],
    ["row", SIZES.lane + SIZES.gap],
    ["row", SIZES.lane + SIZES.gap],
  ]);
});

test("a drag selects the rows that it touches", () => {
  const view = openView();
  view.arrange([rank()], new Set(), new RowState());
  const item = view.rowItem(3, 1);
  assert.ok(item);
  assert.deepEqual(view.rowsBetween(view.y(item.top) + 1, view.y(item.top) + 2), new Map([[3, new Set([1])]]));
  assert.equal(view.itemAt(view.y(item.top) + 1), item);
  assert.equal(view.rowItem(0, 1), undefined);
});

test("pinned rows come first and stay in place while the other rows scroll", () => {
  const view = openView();
  view.arrange([rank()], new Set(), new RowState("pin.3.1"));
  const [pinned, heading, other] = view.items;
  const height = SIZES.lane + SIZES.gap;
  assert.deepEqual([pinned.kind, heading.kind, other.kind, view.items.length], ["row", "rank", "row", 3]);
  assert.deepEqual([view.pinnedHeight, heading.top], [height, height]);
  view.scroll = 40;
  assert.equal(view.y(pinned.top), SIZES.ruler);
  assert.equal(view.itemAt(SIZES.ruler + 1), pinned);
  assert.equal(view.y(other.top), SIZES.ruler + height + SIZES.head - 40);
  assert.equal(view.isVisible(heading), false);
  assert.deepEqual(view.rowsBetween(SIZES.ruler, SIZES.ruler + 2), new Map([[3, new Set([1])]]));
});

test("if pinned rows would fill the view, they scroll with the other rows", () => {
  const view = openView();
  view.height = SIZES.ruler + 50;
  view.arrange([rank()], new Set(), new RowState("pin.3.0,3.1"));
  view.scroll = 10;
  assert.deepEqual([view.pinnedHeight, view.items[0].top], [0, 0]);
});

test("a filter leaves out ranks without a matching row", () => {
  const view = openView();
  view.arrange([rank()], new Set(), new RowState("find.stream 1"));
  assert.deepEqual(view.items.map(({ kind }) => kind), ["rank", "row"]);
  view.arrange([rank()], new Set(), new RowState("find.nothing"));
  assert.deepEqual(view.items, []);
});
