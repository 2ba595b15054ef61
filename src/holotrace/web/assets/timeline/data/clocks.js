// Converts between times of a rank (ns since its origin) and times on the axis (ns since the origin of the first rank).
// The axis shows the clock of the reference host; the `lines` of a rank's clock give the corrections to add to the
// rank's times.

import { durationText } from "../../units.js";

/** @typedef {import("../../types.js").Clock} Clock */
/** @typedef {import("../../types.js").ClockAnswer} ClockAnswer */
/** @typedef {import("../../types.js").ClockLine} ClockLine */

const PARTS = 1e9;

/**
 * Return a clock that has not been compared with other clocks.
 * @param {bigint} origin
 * @param {bigint} base
 * @returns {Clock}
 */
export const recorded = (origin, base) => ({ recorded: Number(origin - base), host: "", halfWidth: null, lines: [] });

/**
 * Return a clock that has been compared with other clocks, with its host, error and corrections from the server.
 * @param {Clock} clock
 * @param {ClockAnswer} answer
 * @param {bigint} origin
 * @returns {Clock}
 */
export const compared = (clock, { host, half_width: halfWidth, lines }, origin) => ({
  ...clock,
  host,
  halfWidth,
  lines: lines.map(({ at, offset, drift, last }) => ({
    at: Number(BigInt(at) - origin),
    offset,
    rate: drift / PARTS,
    last: last === null ? Infinity : Number(BigInt(last) - origin),
  })),
});

/**
 * @param {Clock} clock
 * @param {number} time of the rank
 */
export const toAxis = ({ recorded: offset, lines }, time) => {
  const line = lines.find(({ last }) => time <= last) ?? lines[lines.length - 1];
  return time + offset + (line ? line.offset + (time - line.at) * line.rate : 0);
};

/**
 * Convert a time on the axis to a time of the rank. If the rank's clock jumped, so that no time of the rank corresponds
 * to the time on the axis, use the correction that applies after the jump.
 * @param {Clock} clock
 * @param {number} time on the axis
 */
export const fromAxis = ({ recorded: offset, lines }, time) => {
  /** @param {ClockLine} line */
  const on = (line) => (time - offset - line.offset + line.at * line.rate) / (1 + line.rate);
  const line = lines.find((known) => on(known) <= known.last) ?? lines[lines.length - 1];
  return line ? on(line) : time - offset;
};

/**
 * Return how far the axis is ahead of a rank's clock at a given time. Over the length of a view, the clock drifts by
 * less than a pixel, so one offset is enough for all events in the view.
 * @param {Clock} clock
 * @param {number} time on the axis
 */
export const offsetAt = (clock, time) => time - fromAxis(clock, time);

/**
 * Return the text for the heading of a rank: the name of its host, and the error of the host's clock.
 * @param {Clock} clock
 */
export const clockText = ({ host, halfWidth, lines }) => {
  const error = lines.length ? (halfWidth ? ` ± ${durationText(halfWidth)}` : "") : ", clock unknown";
  return `${host}${error}`;
};
