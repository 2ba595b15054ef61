// Formatting numbers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { amountText, clamp, durationText, momentText, percentText } from "../../../src/holotrace/web/assets/units.js";

test("a duration is shown with four digits and in the largest unit that fits", () => {
  assert.equal(durationText(999), "999 ns");
  assert.equal(durationText(1_500), "1.5 µs");
  assert.equal(durationText(12_345_678), "12.35 ms");
  assert.equal(durationText(3e9), "3 s");
  assert.equal(durationText(999_999), "1 ms");
  assert.equal(durationText(-2_000), "-2 µs");
});

test("times on the ruler have enough digits to differ from their neighbours", () => {
  assert.equal(momentText(12_000_000, 100_000), "12.0 ms");
  assert.equal(momentText(12_100_000, 100_000), "12.1 ms");
  assert.equal(momentText(0, 5), "0 ns");
});

test("counters use decimal units for rates and binary ones for memory", () => {
  assert.equal(amountText(1_536, "bytes"), "1.5 KiB");
  assert.equal(amountText(1_500_000_000, "bytes/s"), "1.5 GB/s");
  assert.equal(amountText(12, ""), "12");
  assert.equal(amountText(0.25, "fraction"), "25 %");
});

test("small percentages have a decimal", () => {
  assert.equal(percentText(0.012), "1.2 %");
  assert.equal(percentText(0.5), "50 %");
});

test("clamp keeps a value between its bounds", () => {
  assert.deepEqual([-1, 5, 11].map((value) => clamp(value, 0, 10)), [0, 5, 10]);
});
