// The areas in a request to the server, and the layout of the flame graph.

import assert from "node:assert/strict";
import { test } from "node:test";

import { areasOf } from "../../../src/holotrace/web/assets/timeline/area/area.js";
import { blocksOf, visibleBlocks } from "../../../src/holotrace/web/assets/timeline/area/flame_layout.js";
import { recorded } from "../../../src/holotrace/web/assets/timeline/data/clocks.js";
import { contrastingInk, ofEvent } from "../../../src/holotrace/web/assets/timeline/drawing/colours.js";
import { EVENTS } from "../../../src/holotrace/web/assets/palette.js";
import { RowState } from "../../../src/holotrace/web/assets/timeline/rows/row_state.js";

/** @typedef {import("../../../src/holotrace/web/assets/types.js").Rank} Rank */

/**
 * @param {number} number
 * @param {bigint} origin
 * @returns {Rank}
 */
const rankOf = (number, origin) => ({
  number,
  origin,
  clock: recorded(origin, 1_000n),
  offset: 0,
  length: 1_000,
  steps: [],
  rows: [0, 1, 2, 3].map((at) => ({ at, label: `stream ${at}`, device: 0, process: "GPU 0", lanes: 1, events: 1, hidden: 0 })),
  lanes: new Map(),
  counters: [],
  path: null,
});

test("the text of an area has the time range and the visible rows of each rank", () => {
  const ranks = [rankOf(0, 1_000n), rankOf(7, 1_400n)];
  const span = { start: 500, end: 600, rows: null };
  assert.equal(areasOf(new RowState(), ranks, span), "0:500:600:0-3;7:100:200:0-3");
  assert.equal(areasOf(new RowState("hide.0.1~pin.7.2"), ranks, span), "0:500:600:0,2-3;7:100:200:0-3");
  assert.equal(areasOf(new RowState("find.rank 7 stream 1"), ranks, span), "7:100:200:1");
  const some = { ...span, rows: new Map([[7, new Set([3, 1])]]) };
  assert.equal(areasOf(new RowState("hide.7.1"), ranks, some), "7:100:200:1,3");
  assert.equal(areasOf(new RowState("find.nothing"), ranks, span), "");
});

test("an area is at least a nanosecond long", () => {
  assert.equal(areasOf(new RowState(), [rankOf(0, 1_000n)], { start: 5, end: 5, rows: null }), "0:5:6:0-3");
});

/** @type {import("../../../src/holotrace/web/assets/types.js").FlamesAnswer} */
const ANSWER = {
  total_ns: 100,
  paths: [
    [-1, 0, 30, 30, 1, 0, 5],
    [-1, 1, 70, 20, 2, 0, 6],
    [1, 0, 10, 10, 1, 0, 7],
    [1, 1, 40, 40, 1, 0, 8],
  ],
  names: [
    ["mm", "operator"],
    ["step", "annotation"],
  ],
  left_out: 0,
};

test("inner blocks are placed from the left edge of the outer block, the widest first", () => {
  const places = blocksOf(ANSWER).map(({ left, depth, inner }) => [left, depth, inner]);
  assert.deepEqual(places, [[70, 0, []], [0, 0, [3, 2]], [40, 1, []], [0, 1, []]]);
});

test("a selected block and the blocks around it fill the whole width", () => {
  const blocks = blocksOf(ANSWER);
  const visible = visibleBlocks(blocks, blocks[2], 100, 0.002);
  assert.deepEqual(visible.map(({ block, left, width }) => [block.at, left, width]), [[1, 0, 1], [2, 0, 1]]);
  assert.equal(visibleBlocks(blocks, null, 100, 0.2).length, 3);
});

test("text has a contrast of at least 4.5 to 1 on every event's colour", () => {
  for (const kind of Object.keys(EVENTS)) {
    for (let at = 0; at < 300; at += 1) {
      const colour = ofEvent(`name ${at}`, kind);
      assert.ok(contrast(colour, contrastingInk(colour)) >= 4.5, colour);
    }
  }
});

/**
 * Return the contrast of black or white text on a fill, computed from the definitions of WCAG and of hsl() in CSS.
 * @param {string} fill
 * @param {string} ink
 */
const contrast = (fill, ink) => {
  const [hue, saturation, lightness] = (fill.match(/[\d.]+/g) ?? []).map(Number);
  const chroma = (1 - Math.abs((2 * lightness) / 100 - 1)) * (saturation / 100);
  const second = chroma * (1 - Math.abs(((hue / 60) % 2) - 1));
  const order = [[0, 1, 2], [1, 0, 2], [2, 0, 1], [2, 1, 0], [1, 2, 0], [0, 2, 1]][Math.floor(hue / 60) % 6];
  const parts = order.map((place) => [chroma, second, 0][place] + lightness / 100 - chroma / 2);
  const linear = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return ink === "#fff" ? 1.05 / (luminance + 0.05) : (luminance + 0.05) / 0.05;
};
