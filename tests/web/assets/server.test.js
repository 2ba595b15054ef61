// Tests of decoding the server's answers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ofEvent } from "../../../src/holotrace/web/assets/timeline/drawing/colours.js";
import { lanesOf, pathOf, startsOf } from "../../../src/holotrace/web/assets/timeline/data/server.js";

test("starts are computed from the lengths of events and the gaps between them", () => {
  assert.deepEqual(startsOf([10, 5, -2], [20, 1, 4]), [10, 35, 34]);
});

test("each lane lists its single events first, then its merged events", () => {
  const lanes = lanesOf({
    lanes: [[2, 1, [[10], [20], [0], [7]], [[40, 5], [10, 10], [6, 3], [3, 2], [0, 0], [8, 9]]]],
    names: [["gemm", "computation", true]],
  });
  const name = { text: "gemm", isFound: true, colour: ofEvent("gemm", "computation") };
  assert.deepEqual([...lanes], [
    [
      "2/1",
      [
        { start: 10, length: 20, busy: 20, count: 1, name, event: 7 },
        { start: 40, length: 10, busy: 6, count: 3, name, event: 8 },
        { start: 55, length: 10, busy: 3, count: 2, name, event: 9 },
      ],
    ],
  ]);
});

test("a segment of the critical path that belongs to no event has no name", () => {
  const path = pathOf({
    window: "step 1",
    start: 0,
    end: 30,
    count: 2,
    classes: [["computation", 20]],
    along: [[0, 0], [10, 20], [1, 1], [0, 1], [-1, 0], [-1, 5], [-1, 2], [-1, 0]],
    path_classes: ["host gap", "computation"],
    names: ["gemm"],
    marks: [[2, 0, [10], [20]]],
  });
  assert.deepEqual(path.along, [
    { start: 0, length: 10, count: 1, kind: "host gap", name: "", event: -1, row: -1, depth: -1 },
    { start: 10, length: 20, count: 1, kind: "computation", name: "gemm", event: 5, row: 2, depth: 0 },
  ]);
  assert.deepEqual([...path.marks], [["2/0", [{ start: 10, length: 20 }]]]);
});
