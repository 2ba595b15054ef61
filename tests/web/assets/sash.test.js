// The height of the timeline's details: keys change it, and the browser stores it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { heightAfter, heightFrom } from "../../../src/holotrace/web/assets/timeline/window/sash.js";

test("arrow keys change the height by 4 percent of the timeline's height, between 10 and 80 percent", () => {
  assert.equal(heightAfter("ArrowUp", 32), 36);
  assert.equal(heightAfter("ArrowDown", 32), 28);
  assert.equal(heightAfter("ArrowDown", 11), 10);
  assert.equal(heightAfter("ArrowUp", 79), 80);
  assert.deepEqual(["Home", "End", "Enter", "x"].map((key) => heightAfter(key, 50)), [10, 80, 32, undefined]);
});

test("a stored height stays between 10 and 80 percent; text that is not a number becomes the default", () => {
  assert.deepEqual([null, "", "x", "-5", "500", "41.5"].map(heightFrom), [32, 32, 32, 10, 80, 41.5]);
});
