// Formats numbers as text.

import { BANDWIDTHS, DURATIONS, SIZES } from "./unit_tables.js";

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/**
 * Return the largest unit in which the value, rounded to this many digits, is at least 1; if there is none, return the
 * smallest unit.
 * @param {number} value
 * @param {[number, string][]} units
 * @param {number} digits
 */
const unitOf = (value, units, digits) => {
  const reaches = (/** @type {[number, string]} */ [size], /** @type {number} */ row) => {
    const smaller = units[row + 1]?.[0] ?? size;
    return Number((value / smaller).toPrecision(digits)) * smaller >= size;
  };
  return units.find(reaches) ?? units[units.length - 1];
};

/** @param {number} ns */
export const durationText = (ns) => {
  const [unit, name] = unitOf(Math.abs(ns), DURATIONS, 4);
  return `${Number((ns / unit).toPrecision(4))} ${name}`;
};

/**
 * Format a time with enough digits to distinguish it from a time that is `step` later.
 * @param {number} ns
 * @param {number} step
 */
export const momentText = (ns, step) => {
  const [unit, name] = unitOf(Math.max(Math.abs(ns), step), DURATIONS, 15);
  return `${(ns / unit).toFixed(clamp(Math.ceil(Math.log10(unit / step)), 0, 9))} ${name}`;
};

/** @param {number} fraction */
export const percentText = (fraction) => `${(100 * fraction).toFixed(fraction < 0.1 ? 1 : 0)} %`;

/** @type {[number, string][]} */
const COUNTS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
];

/** @type {Record<string, [number, string][]>} */
const UNITS = { bytes: SIZES, "bytes/s": BANDWIDTHS };

/**
 * Format the value of a counter.
 * @param {number} value
 * @param {string} unit
 */
export const amountText = (value, unit) => {
  if (unit === "fraction") {
    return percentText(value);
  }
  const [size, name] = unitOf(Math.abs(value), UNITS[unit] ?? COUNTS, 3);
  return `${Number((value / size).toPrecision(3))} ${name}`.trim();
};

/** @param {number} number */
export const countText = (number) => number.toLocaleString("en");

/**
 * @param {number} number
 * @param {string} noun
 */
export const countedText = (number, noun) => `${countText(number)} ${noun}${number === 1 ? "" : "s"}`;
