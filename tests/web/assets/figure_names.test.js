// Names and titles in a figure are fitted to its width.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fittedAxis, fittedNotes, wrapped } from "../../../src/holotrace/web/assets/shell/figure_names.js";

const layout = {
  yaxis: { showticklabels: false },
  annotations: [
    { text: "f&lt;int&gt;_kernel", xanchor: "left", yref: "y" },
    { text: "one two three four", xanchor: "left", yref: "paper", font: { size: 24 } },
    { text: "centred", yref: "paper" },
  ],
};

/** @param {number} width */
const textsAt = (width) => fittedNotes(layout, width)?.map(({ text }) => text);

test("in a wide figure, all texts are shown in full", () => {
  assert.deepEqual(textsAt(1_000), ["f&lt;int&gt;_kernel", "one two three four", "centred"]);
});

test("in a narrow figure, names are cut between letters, and titles in larger letters wrap earlier", () => {
  assert.deepEqual(textsAt(60 + 9 * 7.2 + 1), ["f&lt;int&gt;_…", "one<br>two<br>three<br>four", "centred"]);
});

test("names with wide letters are cut after fewer letters", () => {
  const annotations = ["bmm_MxE4m3_MxE2m1", "sgl_fill_list_tile"].map((text) => ({ text, xanchor: "left", yref: "y" }));
  const notes = fittedNotes({ yaxis: { showticklabels: false }, annotations }, 60 + 18 * 7.2 + 1);
  assert.deepEqual(notes?.map(({ text }) => text), ["bmm_MxE4m3_Mx…", "sgl_fill_list_tile"]);
});

test("a title leaves room for the labels of the axis below it", () => {
  const annotations = [{ text: "the path over time", xanchor: "left", yref: "paper" }];
  /** @param {object} yaxis2 */
  const title = (yaxis2) => fittedNotes({ annotations, yaxis2 }, 75 + 10 * 7.2 + 60)?.[0]?.text;
  assert.equal(title({}), "the path over time");
  assert.equal(title({ categoryarray: ["ten letter"] }), "the path<br>over<br>time");
  assert.equal(title({ ticktext: ["ten letter"], categoryarray: ["a key of many letters"] }), "the path<br>over<br>time");
  assert.equal(title({ ticktext: ["rank 0"] }), "the path<br>over time");
  assert.equal(title({ categoryarray: ["ten letter"], showticklabels: false }), "the path over time");
});

test("a word longer than a line gets its own line", () => {
  assert.equal(wrapped("a long_word b c", 3), "a<br>long_word<br>b c");
});

test("in a narrow figure, an axis of many ranks labels only some ranks, and its title says which", () => {
  const ranks = Array.from({ length: 16 }, (_, at) => String(8 * at));
  /** @param {string} text */
  const named = (text) => ({ type: "category", tickvals: ranks, ticktext: ranks, title: { text } });
  const axis = named("rank (every 8th is named)");
  assert.equal(fittedAxis(axis, 1_000), axis);
  const { ticktext, tickvals, title } = fittedAxis(axis, 358);
  assert.deepEqual(tickvals, ["0", "16", "32", "48", "64", "80", "96", "112"]);
  assert.deepEqual(ticktext, tickvals);
  assert.equal(title?.text, "rank (every 16th is named)");
  assert.equal(fittedAxis(named("rank"), 358).title?.text, "rank (every 2nd is named)");
  assert.equal(fittedAxis(named("rank (every 16th is named)"), 358).title?.text, "rank (every 32nd is named)");
  assert.equal(fittedAxis(named("rank (every 32nd is named)"), 358).title?.text, "rank (every 64th is named)");
});

test("a figure too narrow for names shows one category and cuts names to an ellipsis", () => {
  const ranks = ["0", "1", "2", "3", "4"];
  const axis = { type: "category", tickvals: ranks, ticktext: ranks };
  for (const width of [-1, 0, 1, 189, 190, 191]) {
    assert.deepEqual(fittedAxis(axis, width).tickvals, ["0"]);
  }
  assert.deepEqual(textsAt(1), ["…", "one<br>two<br>three<br>four", "centred"]);
});
