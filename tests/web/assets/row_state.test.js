// Which rows are shown, and in what order.

import assert from "node:assert/strict";
import { test } from "node:test";

import { recorded } from "../../../src/holotrace/web/assets/timeline/data/clocks.js";
import { RowState } from "../../../src/holotrace/web/assets/timeline/rows/row_state.js";

/** @typedef {import("../../../src/holotrace/web/assets/types.js").Rank} Rank */
/** @typedef {import("../../../src/holotrace/web/assets/types.js").Row} Row */

/**
 * @param {number} at
 * @param {string} label
 * @param {number | null} device
 * @returns {Row}
 */
const row = (at, label, device) => ({ at, label, device, process: "python 1", lanes: 1, events: 1, hidden: 0 });

/**
 * @param {number} number
 * @returns {Rank}
 */
const rankOf = (number) => ({
  number,
  origin: 0n,
  clock: recorded(0n, 0n),
  offset: 0,
  length: 1_000,
  steps: [],
  rows: [row(0, "thread 1", null), row(1, "thread 2", null), row(2, "stream 7", 0), row(3, "stream 20", 0)],
  lanes: new Map(),
  counters: [],
  path: null,
});

/**
 * @param {RowState} state
 * @param {Rank} rank
 */
const shown = (state, rank) => state.shown(rank).map(({ at }) => at);

test("reading a state from a text and writing it again returns the same text", () => {
  for (const text of ["", "pin.0.3,1.2~hide.0.5~order.0.3.1.2,4.1.0~find.gpu ~ stream", "find.a~pin.0.1", "hide.7.1"]) {
    assert.equal(String(new RowState(text)), text);
  }
});

test("malformed parts of an address are ignored", () => {
  const state = new RowState("pin.x.1,2.2,1~hide.__proto__~order.0~order.0.9.9~nonsense~hide.1.2.3");
  assert.deepEqual([state.pinned, [...state.hidden], [...state.order]], [["2.2"], [], [[0, [9, 9]]]]);
  assert.deepEqual(shown(state, rankOf(0)), [0, 1, 2, 3]);
});

test("a pinned row leaves its rank and comes back when it is unpinned", () => {
  const [state, rank] = [new RowState(), rankOf(4)];
  state.togglePinned(rank, rank.rows[2]);
  assert.deepEqual(shown(state, rank), [0, 1, 3]);
  assert.deepEqual(state.pinnedOf([rankOf(0), rank]).map((item) => [item.rank.number, item.row.at]), [[4, 2]]);
  assert.equal(String(state), "pin.4.2");
  state.togglePinned(rank, rank.rows[2]);
  assert.deepEqual([shown(state, rank), String(state)], [[0, 1, 2, 3], ""]);
});

test("hiding a row unpins it, and pinning a row shows it", () => {
  const [state, rank] = [new RowState(), rankOf(0)];
  state.togglePinned(rank, rank.rows[1]);
  state.toggleHidden(rank, rank.rows[1]);
  assert.equal(String(state), "hide.0.1");
  state.togglePinned(rank, rank.rows[1]);
  assert.equal(String(state), "pin.0.1");
});

test("every word of the filter must occur in the label, process or rank, in upper or lower case", () => {
  const [state, rank] = [new RowState(), rankOf(3)];
  for (const [text, expected] of /** @type {[string, number[]][]} */ ([
    ["STREAM", [2, 3]],
    ["rank 3 gpu 0", [2, 3]],
    ["thread 2", [1]],
    ["rank 9", []],
    ["", [0, 1, 2, 3]],
  ])) {
    state.text = text;
    assert.deepEqual(shown(state, rank), expected, text);
  }
});

test("a row can be moved before another row, or to the end", () => {
  const [state, rank] = [new RowState(), rankOf(0)];
  state.move(rank, rank.rows[3], { rank, row: rank.rows[1] });
  assert.deepEqual(shown(state, rank), [0, 3, 1, 2]);
  state.move(rank, rank.rows[0], null);
  assert.deepEqual(shown(state, rank), [3, 1, 2, 0]);
  assert.equal(String(state), "order.0.3.1.2.0");
});

test("a row dragged onto the pinned rows is pinned, and a row dragged out of them is unpinned", () => {
  const [state, rank] = [new RowState("pin.0.1"), rankOf(0)];
  state.move(rank, rank.rows[3], { rank, row: rank.rows[1] });
  assert.deepEqual(state.pinned, ["0.3", "0.1"]);
  state.move(rank, rank.rows[3], { rank, row: rank.rows[0] });
  assert.deepEqual([state.pinned, shown(state, rank)], [["0.1"], [3, 0, 2]]);
});

test("moving a row by one place skips hidden rows", () => {
  const [state, rank] = [new RowState("hide.0.1"), rankOf(0)];
  state.shift([rank], rank, rank.rows[0], 1);
  assert.deepEqual(shown(state, rank), [2, 0, 3]);
  state.shift([rank], rank, rank.rows[0], 1);
  state.shift([rank], rank, rank.rows[0], 1);
  assert.deepEqual(shown(state, rank), [2, 3, 0]);
  state.shift([rank], rank, rank.rows[0], -1);
  assert.deepEqual(shown(state, rank), [2, 0, 3]);
});

test("pinned rows can be reordered among themselves, even across ranks", () => {
  const [state, one, other] = [new RowState("pin.0.1,5.2"), rankOf(0), rankOf(5)];
  state.shift([one, other], other, other.rows[2], -1);
  assert.deepEqual(state.pinned, ["5.2", "0.1"]);
  state.shift([one, other], other, other.rows[2], 1);
  assert.deepEqual(state.pinned, ["0.1", "5.2"]);
});

test("jumping to an event in a hidden row shows the row", () => {
  const [state, rank] = [new RowState("hide.0.2~find.thread"), rankOf(0)];
  state.reveal(rank, rank.rows[2]);
  assert.deepEqual(shown(state, rank), [0, 1, 2, 3]);
});
