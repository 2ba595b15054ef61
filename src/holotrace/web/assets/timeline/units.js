// Formats numbers as text.

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/**
 * @param {number} ns
 * @returns {[number, string]}
 */
const unitOf = (ns) => (ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"]);

/** @param {number} ns */
export const durationText = (ns) => {
  const [unit, name] = unitOf(Math.abs(ns));
  return `${Number((ns / unit).toPrecision(4))} ${name}`;
};

/**
 * Format a time with enough digits to distinguish it from a time that is `step` later.
 * @param {number} ns
 * @param {number} step
 */
export const momentText = (ns, step) => {
  const [unit, name] = unitOf(Math.max(Math.abs(ns), step));
  return `${(ns / unit).toFixed(clamp(Math.ceil(Math.log10(unit / step)), 0, 9))} ${name}`;
};

/** @param {number} fraction */
export const percentText = (fraction) => `${(100 * fraction).toFixed(fraction < 0.1 ? 1 : 0)} %`;

/** @type {Record<string, [number, string[]]>} */
const SCALES = {
  "": [1000, ["", "k", "M", "G", "T"]],
  bytes: [1024, ["B", "KiB", "MiB", "GiB", "TiB"]],
  "bytes/s": [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
};

/**
 * Format the value of a counter.
 * @param {number} value
 * @param {string} unit
 */
export const amountText = (value, unit) => {
  if (unit === "fraction") {
    return percentText(value);
  }
  const [base, names] = SCALES[unit] ?? SCALES[""];
  const power = clamp(Math.floor(Math.log(Math.max(Math.abs(value), 1)) / Math.log(base)), 0, names.length - 1);
  return `${Number((value / base ** power).toPrecision(3))} ${names[power]}`.trim();
};

/** @param {number} number */
export const countText = (number) => number.toLocaleString("en");
