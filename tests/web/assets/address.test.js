// The query string of the page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { forget, numbersOf, put, rangesOf, searchOf } from "../../../src/holotrace/web/assets/shell/address.js";

test("numbers are sorted, and consecutive numbers become a range", () => {
  assert.equal(rangesOf(["7", "2", "0", "1"]), "0-2,7");
  assert.equal(rangesOf([10, 9]), "9-10");
  assert.equal(rangesOf([]), "");
});

test("numbers written as ranges are read back as the same numbers", () => {
  assert.deepEqual(numbersOf("0-2,7"), [0, 1, 2, 7]);
  assert.deepEqual(numbersOf("5"), [5]);
});

test("an empty value removes its key", () => {
  const params = new URLSearchParams("run=a&ranks=1");
  put(params, "ranks", "");
  put(params, "steps", "2");
  assert.equal(params.toString(), "run=a&steps=2");
});

test("`forget` removes the options of tables and the given keys", () => {
  const params = new URLSearchParams("view=diff&q.diff.0=gemm&top.diff.0=10&event=0:5&run=a");
  forget(params, ["event"]);
  assert.equal(params.toString(), "view=diff&run=a");
});

test("commas and tildes are not escaped in the query string", () => {
  assert.equal(searchOf(new URLSearchParams({ run: "31fc~2", ranks: "0-3,7" })), "?run=31fc~2&ranks=0-3,7");
});
