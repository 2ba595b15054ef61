// Tests of moving and resizing the map's brush, of the text shown after a step to another event, and of flag names.

import assert from "node:assert/strict";
import { test } from "node:test";

import { stepText } from "../../../src/holotrace/web/assets/timeline/navigation/stepping.js";
import { freeName } from "../../../src/holotrace/web/assets/timeline/window/flags.js";
import { afterKey, dragged, gripAt } from "../../../src/holotrace/web/assets/timeline/window/minimap.js";

const WINDOW = { start: 100, end: 200 };
const WHOLE = { start: 0, end: 1_000 };

test("depending on its position, the pointer grips an edge, the whole brush, or nothing", () => {
  const grips = [80, 95, 107, 109, 150, 193, 207, 209].map((x) => gripAt(x, 100, 200));
  assert.deepEqual(grips, ["new", "start", "start", "both", "both", "end", "end", "new"]);
});

test("a narrow brush can still be moved", () => {
  assert.deepEqual([100, 103, 106].map((x) => gripAt(x, 100, 106)), ["start", "both", "end"]);
});

test("a drag moves the gripped edge or the whole brush, or draws a new brush; one edge may cross the other", () => {
  assert.deepEqual(dragged("both", WINDOW, 150, 180), { start: 130, end: 230 });
  assert.deepEqual(dragged("start", WINDOW, 100, 150), { start: 150, end: 200 });
  assert.deepEqual(dragged("end", WINDOW, 200, 50), { start: 50, end: 100 });
  assert.deepEqual(dragged("new", WINDOW, 900, 400), { start: 400, end: 900 });
});

test("arrow keys pan by a tenth of the visible range or zoom around its middle; Home and End go to the ends", () => {
  assert.deepEqual(afterKey("ArrowRight", WINDOW, WHOLE), { start: 110, end: 210 });
  assert.deepEqual(afterKey("ArrowLeft", WINDOW, WHOLE), { start: 90, end: 190 });
  assert.deepEqual(afterKey("ArrowUp", WINDOW, WHOLE), { start: 110, end: 190 });
  assert.deepEqual(afterKey("ArrowDown", WINDOW, WHOLE), { start: 87.5, end: 212.5 });
  assert.deepEqual(afterKey("Home", WINDOW, WHOLE), { start: 0, end: 100 });
  assert.deepEqual(afterKey("End", WINDOW, WHOLE), { start: 900, end: 1_000 });
  assert.equal(afterKey("x", WINDOW, WHOLE), undefined);
});

test("after a step, the text shows the number of the event, or says that there are no more events", () => {
  const at = /** @type {[number, number, number, number, number]} */ ([0, 0, 0, 0, 0]);
  assert.equal(stepText("row", 1, { at, number: 2, count: 1_200 }), "2 of 1,200 on this row");
  assert.equal(stepText("name", 1, { at: null, number: 1, count: 1 }), "1 of 1 of this name; none after it");
  assert.equal(stepText("row", -1, { at: null, number: 1, count: 3 }), "1 of 3 on this row; none before it");
});

test("a new flag has the first free number", () => {
  assert.equal(freeName([]), "flag 1");
  assert.equal(freeName([{ time: 0, name: "flag 2" }]), "flag 1");
  assert.equal(freeName(["flag 1", "flag 2", "mine"].map((name) => ({ time: 0, name }))), "flag 3");
});
