// Finds what to show on the timeline for a row of a table: an event, a time or a name.

/** @typedef {import("../types.js").TableRow} TableRow */

const NAMES = ["name", "operator", "annotation", "top_operator", "event"];

/**
 * Return the digits of a cell: "1,234 ns" -> "1234"; empty if the cell is not a whole number.
 * @param {TableRow} row
 * @param {string} key
 */
export const digitsOf = (row, key) => {
  const exact = row[`${key}|exact`] ?? "";
  return /^[\d,]+( ns)?$/.test(exact) ? exact.replace(/\D/g, "") : "";
};

/**
 * Return a parameter (key and value) for the timeline's address. It opens the row's event or time, or searches for a
 * name.
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
