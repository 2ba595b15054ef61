// Sends requests to `timeline/routes.py` and converts the answers. Addresses are relative, because the pages may be
// served under any path.

import * as colours from "../drawing/colours.js";

/** @typedef {import("../../types.js").CriticalPath} CriticalPath */
/** @typedef {import("../../types.js").Interval} Interval */
/** @typedef {import("../../types.js").PathAnswer} PathAnswer */
/** @typedef {import("../../types.js").Slice} Slice */
/** @typedef {import("../../types.js").SlicesAnswer} SlicesAnswer */

const POLL_MS = 60;

/**
 * Convert an error response, which may not be JSON, to an Error.
 * @param {Response} response
 */
const errorOf = async (response) => {
  const answer = await response.json().catch(() => ({}));
  return new Error(answer.error || `the server answered with status ${response.status}; reload the page`);
};

/** @typedef {{ signal?: AbortSignal, waiting?: (text: string) => void }} Options */

/**
 * Repeat a request until the answer is ready; `waiting` receives the server's progress messages.
 * @param {string} name
 * @param {Record<string, string | number>} parameters
 * @param {RequestInit} request
 * @param {Options} options
 */
const repeated = async (name, parameters, request, { signal, waiting }) => {
  const query = new URLSearchParams(Object.entries(parameters).map(([key, value]) => [key, String(value)]));
  for (;;) {
    const response = await fetch(`timeline/${name}?${query}`, { ...request, signal });
    if (!response.ok) {
      throw await errorOf(response);
    }
    const answer = await response.json();
    if (response.status !== 202) {
      return answer;
    }
    waiting?.(answer.waiting);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

/**
 * Return the answer to a request.
 * @param {string} name
 * @param {Record<string, string | number>} parameters
 * @param {Options} [options]
 */
export const ask = (name, parameters, options = {}) => repeated(name, parameters, {}, options);

/**
 * Return the answer to a request with a body; the server accepts such requests only from its own pages.
 * @param {string} name
 * @param {Record<string, string | number>} parameters
 * @param {object} body
 * @param {Options} [options]
 */
export const send = (name, parameters, body, options = {}) => {
  const headers = { "Content-Type": "application/json" };
  return repeated(name, parameters, { method: "POST", headers, body: JSON.stringify(body) }, options);
};

/**
 * Compute the starts of intervals from their lengths and from `steps`, the times from the end of each interval to the
 * start of the next. This function is the inverse of `steps_between` in `timeline/query.py`.
 * @param {number[]} steps
 * @param {number[]} lengths
 */
export const startsOf = (steps, lengths) => {
  let end = 0;
  return steps.map((step, at) => {
    const start = end + step;
    end = start + lengths[at];
    return start;
  });
};

/**
 * Convert an answer of `timeline/slices` to the slices of each lane.
 * @param {SlicesAnswer} answer
 * @returns {Map<string, Slice[]>}
 */
export const lanesOf = (answer) => {
  const names = answer.names.map(([text, kind, isFound]) => ({ text, isFound, colour: colours.ofEvent(text, kind) }));
  const lanes = new Map();
  for (const [row, depth, alone, merged] of answer.lanes) {
    const [steps, lengths, numbers, events] = alone;
    const single = startsOf(steps, lengths).map((start, at) => ({
      start,
      length: lengths[at],
      busy: lengths[at],
      count: 1,
      name: names[numbers[at]],
      event: events[at],
    }));
    const [mergedSteps, mergedLengths, busy, counts, mergedNumbers, longest] = merged;
    const several = startsOf(mergedSteps, mergedLengths).map((start, at) => ({
      start,
      length: mergedLengths[at],
      busy: busy[at],
      count: counts[at],
      name: names[mergedNumbers[at]],
      event: longest[at],
    }));
    lanes.set(`${row}/${depth}`, [...single, ...several]);
  }
  return lanes;
};

/**
 * Convert an answer of `timeline/path` to a critical path: its segments in order of time, and its marks by lane.
 * @param {PathAnswer} answer
 * @returns {CriticalPath}
 */
export const pathOf = (answer) => {
  const [steps, lengths, counts, classes, names, events, rows, depths] = answer.along;
  const along = startsOf(steps, lengths).map((start, at) => ({
    start,
    length: lengths[at],
    count: counts[at],
    kind: answer.path_classes[classes[at]],
    name: names[at] < 0 ? "" : answer.names[names[at]],
    event: events[at],
    row: rows[at],
    depth: depths[at],
  }));
  /** @type {Map<string, Interval[]>} */
  const marks = new Map();
  for (const [row, depth, distances, sizes] of answer.marks) {
    marks.set(
      `${row}/${depth}`,
      startsOf(distances, sizes).map((start, at) => ({ start, length: sizes[at] })),
    );
  }
  return { ...answer, along, marks };
};
