// Converts the times of a rank to times on the axis, and back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { clockText, compared, fromAxis, offsetAt, recorded, toAxis } from "../../../src/holotrace/web/assets/timeline/data/clocks.js";

const ORIGIN = 1_795_209_476_000_000_000n;

/**
 * A clock as the server describes it, for a rank whose origin is 500 ns after the first rank's origin.
 * @param {{ at: string, offset: number, drift: number, last: string | null }[]} lines
 */
const clockOf = (lines) =>
  compared(recorded(ORIGIN + 500n, ORIGIN), { rank: 1, host: "node-1", half_width: 12_000, lines }, ORIGIN + 500n);

test("if a clock has no lines, toAxis adds only the difference between the two origins", () => {
  const clock = recorded(ORIGIN + 500n, ORIGIN);
  assert.equal(toAxis(clock, 7), 507);
  assert.equal(fromAxis(clock, 507), 7);
});

test("toAxis adds the offset and drift of a clock's line, and fromAxis subtracts them", () => {
  const clock = clockOf([{ at: String(ORIGIN + 500n), offset: -2_000_000_000, drift: 100_000, last: null }]);
  assert.equal(toAxis(clock, 0), 500 - 2_000_000_000);
  assert.equal(toAxis(clock, 1_000_000_000), 1_000_000_000 + 500 - 2_000_000_000 + 100_000);
  for (const time of [0, 123, 5e9, 1e12]) {
    assert.ok(Math.abs(fromAxis(clock, toAxis(clock, time)) - time) < 0.01);
  }
});

test("a clock that jumped has one line before the jump and one after it", () => {
  const clock = clockOf([
    { at: String(ORIGIN + 500n), offset: 0, drift: 0, last: String(ORIGIN + 1_500n) },
    { at: String(ORIGIN + 500n), offset: 9_000, drift: 0, last: null },
  ]);
  assert.deepEqual([1_000, 1_001].map((time) => toAxis(clock, time)), [1_500, 10_501]);
  assert.deepEqual([1_500, 10_501].map((time) => fromAxis(clock, time)), [1_000, 1_001]);
});

test("in a view of 1,500 pixels, one offset for the whole view is accurate to a fiftieth of a pixel", () => {
  const clock = clockOf([{ at: String(ORIGIN), offset: 40, drift: 20_000, last: null }]);
  const [start, end] = [3e9, 4e9];
  const offset = offsetAt(clock, (start + end) / 2);
  for (const time of [start, end]) {
    assert.ok(Math.abs(toAxis(clock, time - offset) - time) < (end - start) / 1_500 / 50);
  }
});

test("the heading shows the clock's uncertainty, or says that the clock is unknown", () => {
  const line = { at: "0", offset: 0, drift: 0, last: null };
  assert.equal(clockText(clockOf([line])), "node-1 ± 12 µs");
  assert.equal(clockText(clockOf([])), "node-1, clock unknown");
  assert.equal(clockText({ ...clockOf([line]), halfWidth: 0 }), "node-1");
});
