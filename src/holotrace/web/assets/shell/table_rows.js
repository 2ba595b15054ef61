// Where a row of a table is on the timeline.

/** @typedef {import("../types.js").TableRow} TableRow */

const NAMES = ["name", "operator", "annotation", "top_operator", "event"];

/**
 * "1,234 ns" -> "1234"; empty if the cell holds no whole number.
 * @param {TableRow} row
 * @param {string} key
 */
export const digitsOf = (row, key) => {
  const exact = row[`${key}|exact`] ?? "";
  return /^[\d,]+( ns)?$/.test(exact) ? exact.replace(/\D/g, "") : "";
};

/**
 * Return an option of the timeline's address and its value: the event or the time of the row, else its name to search.
 * @param {TableRow} row
 * @returns {[string, string] | undefined}
 */
export const placeOf = (row) => {
  const keys = ["rank", "event_index", "at_ns", "start_ns", "end_ns", "duration_ns"];
  const [rank, event, at, start, end, duration] = keys.map((key) => digitsOf(row, key));
  if (rank && event) {
    return ["event", `${rank}:${event}`];
  }
  if (at) {
    return ["at", at];
  }
  if (start) {
    const last = end || (duration && String(BigInt(start) + BigInt(duration)));
    return ["at", last ? `${start}-${last}` : start];
  }
  const name = NAMES.map((key) => row[`${key}|exact`]).find(Boolean);
  return name ? ["find", name] : undefined;
};
