// Where a row of a table is on the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";

import { digitsOf, placeOf } from "../../../src/holotrace/web/assets/shell/table_rows.js";

test("an exact value gives its digits, anything else nothing", () => {
  assert.equal(digitsOf({ "start_ns|exact": "1,234 ns" }, "start_ns"), "1234");
  assert.equal(digitsOf({ "name|exact": "gemm_128" }, "name"), "");
  assert.equal(digitsOf({}, "rank"), "");
});

test("an event is better than a time, a time better than a name", () => {
  const row = { "rank|exact": "3", "event_index|exact": "1,005", "start_ns|exact": "10 ns", "name|exact": "gemm" };
  assert.deepEqual(placeOf(row), ["event", "3:1005"]);
  assert.deepEqual(placeOf({ ...row, "event_index|exact": "" }), ["at", "10"]);
  assert.deepEqual(placeOf({ "name|exact": "gemm" }), ["find", "gemm"]);
  assert.equal(placeOf({ "share|exact": "0.5" }), undefined);
});

test("a time has an end where the row has one, with all of its digits", () => {
  const start = { "start_ns|exact": "1,725,000,000,000,000,001 ns" };
  assert.deepEqual(placeOf({ ...start, "duration_ns|exact": "2 ns" }), [
    "at",
    "1725000000000000001-1725000000000000003",
  ]);
  assert.deepEqual(placeOf({ ...start, "end_ns|exact": "1,725,000,000,000,000,009 ns" }), [
    "at",
    "1725000000000000001-1725000000000000009",
  ]);
  assert.deepEqual(placeOf({ ...start, "at_ns|exact": "7" }), ["at", "7"]);
});
