// Tests of writing and reading the parts of the page's address that describe the timeline's view.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as texts from "../../../src/holotrace/web/assets/timeline/address/texts.js";

const BASE = 1_700_000_000_000_000_000n;

test("a time range keeps all digits", () => {
  const text = texts.windowText({ start: 25_000.4, end: 225_001 }, BASE);
  assert.equal(text, "1700000000000025000-1700000000000225001");
  assert.deepEqual(texts.windowOf(text, BASE), { start: 25_000, end: 225_001 });
});

test("an invalid time range is ignored", () => {
  for (const text of ["", "5", "5-", "7-5", "5-5", "a-b", "1-2-3", "9".repeat(40)]) {
    assert.equal(texts.windowOf(text, 0n), null);
  }
});

test("the item at the upper edge, and its distance from the edge, are written as text and read back", () => {
  const anchor = { key: "3.row12", away: -14 };
  assert.equal(texts.topText(anchor), "3.row12.14");
  assert.deepEqual(texts.topOf("3.row12.14"), anchor);
  assert.deepEqual(texts.topOf("0.rank.0"), { key: "0.rank", away: -0 });
  assert.deepEqual(["", "row", "3.row", "3.row.x", "3..1"].map(texts.topOf), [null, null, null, null, null]);
});

test("flags with any name are read back from their text", () => {
  const flags = [
    { time: -5, name: "a, b: c & d % 50%" },
    { time: 0, name: "" },
    { time: 7, name: "<script>alert(1)</script> é\n" },
  ];
  assert.deepEqual(texts.flagsOf(texts.flagsText(flags, BASE), BASE), flags);
  assert.deepEqual(texts.flagsOf("", BASE), []);
  assert.deepEqual(texts.flagsOf("x,5,5:%E0%A4%A", 0n), [{ time: 5, name: "%E0%A4%A" }]);
});

test("a long name from the address is cut", () => {
  assert.equal(texts.flagsOf(`1:${"x".repeat(99)}`, 0n)[0].name.length, texts.LONGEST_NAME);
});
