"use strict";

// What the server is asked, and its answers as the timeline keeps them. Addresses are relative: the pages may be mounted
// anywhere.
(() => {
  const timeline = (window.htaTimeline = window.htaTimeline || {});

  const ASK_AGAIN_MS = 60;

  // An error of the server itself may be no JSON.
  const errorOf = async (response) => {
    const answer = await response.json().catch(() => ({}));
    return new Error(answer.error || `the server answered ${response.status}`);
  };

  // Ask until the answer is ready; `waiting` is told what the server is doing.
  const ask = async (name, parameters, { signal, waiting } = {}) => {
    for (;;) {
      const response = await fetch(`timeline/${name}?${new URLSearchParams(parameters)}`, { signal });
      if (!response.ok) {
        throw await errorOf(response);
      }
      const answer = await response.json();
      if (response.status !== 202) {
        return answer;
      }
      if (waiting) {
        waiting(answer.waiting);
      }
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  };

  // Distances from the end before, and lengths -> starts.
  const startsOf = (steps, lengths) => {
    let at = 0;
    return steps.map((step, place) => {
      const start = at + step;
      at = start + lengths[place];
      return start;
    });
  };

  // An answer to `slices` -> what is drawn in each lane.
  const lanesOf = (answer) => {
    const names = answer.names.map(([text, kind, isFound]) => ({
      text, isFound, colour: timeline.colours.ofEvent(text, kind),
    }));
    const lanes = new Map();
    for (const [row, depth, alone, merged] of answer.lanes) {
      const slices = startsOf(alone[0], alone[1]).map((start, at) => ({
        start, length: alone[1][at], busy: alone[1][at], count: 1, name: names[alone[2][at]], event: alone[3][at],
      }));
      const bins = startsOf(merged[0], merged[1]).map((start, at) => ({
        start, length: merged[1][at], busy: merged[2][at], count: merged[3][at], name: names[merged[4][at]], event: merged[5][at],
      }));
      lanes.set(`${row}/${depth}`, slices.concat(bins));
    }
    return lanes;
  };

  // An answer to `path` -> its segments one after the other, and its parts in each lane.
  const pathOf = (answer) => {
    const [steps, lengths, counts, classes, names, events, rows, depths] = answer.along;
    const along = startsOf(steps, lengths).map((start, at) => ({
      start, length: lengths[at], count: counts[at], kind: answer.path_classes[classes[at]],
      name: names[at] < 0 ? "" : answer.names[names[at]], event: events[at], row: rows[at], depth: depths[at],
    }));
    const marks = new Map();
    for (const [row, depth, distances, sizes] of answer.marks) {
      marks.set(`${row}/${depth}`, startsOf(distances, sizes).map((start, at) => ({ start, length: sizes[at] })));
    }
    return { ...answer, along, marks };
  };

  timeline.server = { ask, lanesOf, pathOf };
})();
