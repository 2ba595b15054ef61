// The event, time or name on the timeline to which a table row links.

import assert from "node:assert/strict";
import { test } from "node:test";

import { digitsOf, placeOf } from "../../../src/holotrace/web/assets/shell/table_rows.js";

test("a whole number is reduced to its digits; any other cell gives an empty text", () => {
  assert.equal(digitsOf({ "start_ns|exact": "1,234 ns" }, "start_ns"), "1234");
  assert.equal(digitsOf({ "name|exact": "gemm_128" }, "name"), "");
  assert.equal(digitsOf({}, "rank"), "");
});

test("a row links to its event; without an event, to its time; without a time, to its name", () => {
  const row = { "rank|exact": "3", "event_index|exact": "1,005", "start_ns|exact": "10 ns", "name|exact": "gemm" };
  assert.deepEqual(placeOf(row), ["event", "3:1005"]);
  assert.deepEqual(placeOf({ ...row, "event_index|exact": "" }), ["at", "10"]);
  assert.deepEqual(placeOf({ "name|exact": "gemm" }), ["find", "gemm"]);
  assert.equal(placeOf({ "share|exact": "0.5" }), undefined);
});

test("the time of a row has all digits, and includes the end if the duration is known", () => {
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
